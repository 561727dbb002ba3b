package wire

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Snapshot is the record of a saved disk.
type Snapshot struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	BoxID     string  `json:"box_id"`
	SizeBytes int64   `json:"size_bytes"`
	Status    string  `json:"status"` // creating, ready, error, deleted
	CreatedAt float64 `json:"created_at"`
}

type snapshotList struct {
	Snapshots []Snapshot `json:"snapshots"`
}

// Snapshot saves the disk of a box and waits until that is done.
func (c *Client) Snapshot(ctx context.Context, id, name string) (Snapshot, error) {
	path, err := boxPath(id, "/snapshots")
	if err != nil {
		return Snapshot{}, err
	}
	k, err := jsonCall(http.MethodPost, path, map[string]string{"name": name})
	if err != nil {
		return Snapshot{}, &Error{Text: err.Error(), Err: err}
	}
	var s Snapshot
	if err := c.do(ctx, k, &s); err != nil {
		return Snapshot{}, err
	}
	for waited := time.Duration(0); s.Status == StateCreating; waited += 2 * time.Second {
		if waited >= readyLimit {
			return s, ErrNotReady
		}
		if err := c.cfg.Sleep(ctx, 2*time.Second); err != nil {
			return s, err
		}
		if s, err = c.findSnapshot(ctx, path, s); err != nil {
			return s, err
		}
	}
	if s.Status != "ready" {
		return s, &Error{Status: http.StatusOK, Sent: true, Text: "the snapshot ended as " + s.Status}
	}
	return s, nil
}

// findSnapshot gives the newest record of s; s itself while it is not listed.
func (c *Client) findSnapshot(ctx context.Context, path string, s Snapshot) (Snapshot, error) {
	var list snapshotList
	if err := c.do(ctx, call{method: http.MethodGet, path: path}, &list); err != nil {
		return s, err
	}
	for _, one := range list.Snapshots {
		if one.ID == s.ID {
			return one, nil
		}
	}
	return s, nil
}

// Snapshots gives those of a box, or of the account when id is empty.
func (c *Client) Snapshots(ctx context.Context, id string) ([]Snapshot, error) {
	path := "/snapshots"
	if id != "" {
		var err error
		if path, err = boxPath(id, path); err != nil {
			return nil, err
		}
	}
	var list snapshotList
	err := c.do(ctx, call{method: http.MethodGet, path: path}, &list)
	return list.Snapshots, err
}

// DeleteSnapshots removes snapshots of the account and gives how many. At least
// one id is needed: the service takes none for "all of them".
func (c *Client) DeleteSnapshots(ctx context.Context, ids ...string) (int, error) {
	if len(ids) == 0 {
		return 0, &Error{Text: "no snapshot is named"}
	}
	k, err := jsonCall(http.MethodDelete, "/snapshots", map[string]any{"ids": ids})
	if err != nil {
		return 0, &Error{Text: err.Error(), Err: err}
	}
	var reply struct {
		Deleted int `json:"deleted"`
	}
	err = c.do(ctx, k, &reply)
	return reply.Deleted, err
}

// DeleteSnapshot removes one snapshot of a box.
func (c *Client) DeleteSnapshot(ctx context.Context, box, id string) error {
	path, err := boxPath(box, "/snapshots/", url.PathEscape(id))
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path}, nil)
}
