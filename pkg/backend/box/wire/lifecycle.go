package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// The states of a box. An unknown one means "let the next call decide".
const (
	StateCreating = "creating"
	StateIdle     = "idle"
	StateRunning  = "running"
	StatePaused   = "paused"
	StateError    = "error"
	StateDeleted  = "deleted"
)

// Box is the record of a box. Every field may be absent.
type Box struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	Labels     []string       `json:"labels"`
	Size       string         `json:"size"`
	Runtime    string         `json:"runtime"`
	Status     string         `json:"status"`
	KeepAlive  bool           `json:"keep_alive"`
	Ephemeral  bool           `json:"ephemeral"`
	CreatedAt  float64        `json:"created_at"` // seconds since 1970
	ExpiresAt  float64        `json:"expires_at"` // of an ephemeral box
	Network    *NetworkPolicy `json:"network_policy"`
	CustomerID string         `json:"customer_id"`
}

// NetworkPolicy says what a box may reach. The lists belong to mode "custom".
type NetworkPolicy struct {
	Mode           string   `json:"mode"` // allow-all, deny-all or custom
	AllowedDomains []string `json:"allowed_domains,omitempty"`
	AllowedCIDRs   []string `json:"allowed_cidrs,omitempty"`
	DeniedCIDRs    []string `json:"denied_cidrs,omitempty"`
}

// CreateFields describe a new box. All are optional.
type CreateFields struct {
	SnapshotID string            `json:"snapshot_id,omitempty"`
	Name       string            `json:"name,omitempty"`
	Labels     []string          `json:"labels,omitempty"`
	Size       string            `json:"size,omitempty"`
	Runtime    string            `json:"runtime,omitempty"`
	Env        map[string]string `json:"env_vars,omitempty"`
	Network    *NetworkPolicy    `json:"network_policy,omitempty"`
	KeepAlive  bool              `json:"keep_alive,omitempty"`
	Ephemeral  bool              `json:"ephemeral,omitempty"`
	TTL        int64             `json:"ttl,omitempty"` // seconds; of an ephemeral box
}

// Create makes a box, from a snapshot if the fields name one. The box may still
// be creating: Ready waits for it. It is repeated only when nothing was sent.
func (c *Client) Create(ctx context.Context, f CreateFields) (Box, error) {
	path := ""
	if f.SnapshotID != "" {
		path = "/from-snapshot"
	}
	k, err := jsonCall(http.MethodPost, path, f)
	if err != nil {
		return Box{}, &Error{Text: err.Error(), Err: err}
	}
	k.limit = 5 * time.Minute
	var b Box
	if err := c.do(ctx, k, &b); err != nil {
		return Box{}, err
	}
	if !ValidID(b.ID) {
		return Box{}, &Error{Status: http.StatusOK, Sent: true, Corrupt: true,
			Text: "the service answered the creation without the id of a box"}
	}
	return b, nil
}

// Errors of Ready.
var (
	// ErrCreation says that the creation of a box failed.
	ErrCreation = errors.New("the creation of the box failed")
	// ErrNotReady says that a box was still being created at the limit.
	ErrNotReady = errors.New("the box was not ready in time")
)

// readyLimit is how long a box may be creating.
const readyLimit = 300 * time.Second

// Ready waits until a box is no longer being created. Failures of single polls
// are tolerated, except 401, 403 and 404.
func (c *Client) Ready(ctx context.Context, b Box) (Box, error) {
	waits := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
	var waited time.Duration
	for i := 0; b.Status == StateCreating; i++ {
		wait := waits[min(i, len(waits)-1)]
		if waited += wait; waited > readyLimit {
			return b, ErrNotReady
		}
		if err := c.cfg.Sleep(ctx, wait); err != nil {
			return b, err
		}
		next, err := c.Get(ctx, b.ID)
		switch StatusOf(err) {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return b, err
		}
		if err == nil {
			b = next
		}
	}
	if b.Status == StateError || b.Status == StateDeleted {
		return b, ErrCreation
	}
	return b, nil
}

// Get gives the record of a box by id or name. The record of a deleted box is
// still given, with StateDeleted.
func (c *Client) Get(ctx context.Context, id string) (Box, error) {
	path, err := boxPath(id)
	if err != nil {
		return Box{}, err
	}
	var b Box
	err = c.do(ctx, call{method: http.MethodGet, path: path}, &b)
	return b, err
}

// List gives the live boxes, those with a label if it is not empty.
func (c *Client) List(ctx context.Context, label string) ([]Box, error) {
	q := url.Values{}
	if label != "" {
		q.Set("label", label)
	}
	var raw json.RawMessage
	if err := c.do(ctx, call{method: http.MethodGet, query: q}, &raw); err != nil {
		return nil, err
	}
	return boxList(raw)
}

// boxList reads an array of boxes, or an object that holds one.
func boxList(raw json.RawMessage) ([]Box, error) {
	var list []Box
	if len(raw) == 0 || json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var wrapped struct {
		Boxes []Box `json:"boxes"`
	}
	if err := json.Unmarshal(raw, &wrapped); err != nil {
		return nil, &Error{Status: http.StatusOK, Sent: true, Corrupt: true, Err: err,
			Text: "the list of boxes does not fit the protocol"}
	}
	return wrapped.Boxes, nil
}

// Status gives the state of a box; 404 once it is deleted.
func (c *Client) Status(ctx context.Context, id string) (string, error) {
	path, err := boxPath(id, "/status")
	if err != nil {
		return "", err
	}
	var reply struct {
		Status string `json:"status"`
	}
	err = c.do(ctx, call{method: http.MethodGet, path: path}, &reply)
	return reply.Status, err
}

// Pause stops a box and keeps its disk; all its processes end.
func (c *Client) Pause(ctx context.Context, id string) error { return c.post(ctx, id, "/pause") }

// Resume starts a paused box.
func (c *Client) Resume(ctx context.Context, id string) error { return c.post(ctx, id, "/resume") }

// Delete removes a box.
func (c *Client) Delete(ctx context.Context, id string) error {
	path, err := boxPath(id)
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path}, nil)
}

// post sends an empty POST to a box's route.
func (c *Client) post(ctx context.Context, id, route string) error {
	path, err := boxPath(id, route)
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodPost, path: path}, nil)
}
