package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/afield-dev/afield/pkg/mount"
)

const (
	// batch is how many rows one message holds.
	batch = 250
	// pulse is how often an idle stream says that it lives.
	pulse = 15 * time.Second
)

// update is one message: the head, and the rows that are new or have changed.
type update struct {
	Head head  `json:"head"`
	Rows []row `json:"rows"`
	// Gone are the identities that are no longer there.
	Gone []string `json:"gone"`
	// Reset says that what came before does not count.
	Reset bool `json:"reset"`
	// More says that further rows of the same state follow.
	More bool `json:"more"`
}

// row is a file, with what the page searches and sorts by.
type row struct {
	mount.FileStatus
	Key        string    `json:"key"`
	LastAnswer time.Time `json:"lastAnswer"`
}

// head is what the page shows above the rows.
type head struct {
	Session       string             `json:"session"`
	Seq           int64              `json:"seq"`
	ContextUsed   *int64             `json:"contextUsed"`
	ContextWindow int64              `json:"contextWindow"`
	Threshold     float64            `json:"threshold"`
	Totals        mount.StatusTotals `json:"totals"`
	Problem       string             `json:"problem"`
}

// events sends the session's state and then its changes as server-sent events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	st := &stream{server: s, w: w, out: http.NewResponseController(w), reset: true, rows: map[string]uint64{}}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	alive := time.NewTicker(pulse)
	defer alive.Stop()
	changed := make(chan struct{}, 1)
	go func() {
		s.Store.Watch(ctx, s.Session, func() error {
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
			return nil
		})
	}()
	for {
		var err error
		select {
		case <-changed:
			err = st.send(ctx)
		case <-alive.C:
			err = st.write([]byte(": alive\n\n"))
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// stream is one open page. It keeps a hash of each row that the page has.
type stream struct {
	server *Server
	w      http.ResponseWriter
	out    *http.ResponseController
	reset  bool
	rows   map[string]uint64
}

var seed = maphash.MakeSeed()

// send reads the session and sends what differs from what the page has.
func (st *stream) send(ctx context.Context) error {
	now, err := st.read(ctx)
	if err != nil {
		return st.put(update{Head: head{Session: st.server.Session, Problem: err.Error()}})
	}
	u := update{Head: head{
		Session: now.Session, Seq: now.Seq, ContextUsed: now.ContextUsed, ContextWindow: now.ContextWindow,
		Threshold: now.Threshold, Totals: now.Totals,
	}, Reset: st.reset}
	there := make(map[string]bool, len(now.Files))
	for _, file := range now.Files {
		f := row{file, file.Key(), file.LastAnswer()}
		there[f.Identity] = true
		if !st.differs(f) {
			continue
		}
		if u.Rows = append(u.Rows, f); len(u.Rows) == batch {
			u.More = true
			if err := st.put(u); err != nil {
				return err
			}
			u.Rows, u.More, u.Reset = nil, false, false
		}
	}
	for id := range st.rows {
		if !there[id] {
			u.Gone = append(u.Gone, id)
			delete(st.rows, id)
		}
	}
	st.reset = false
	return st.put(u)
}

func (st *stream) read(ctx context.Context) (mount.Status, error) {
	m := mount.Mount{Store: st.server.Store, Config: st.server.Config}
	return m.Status(ctx, st.server.Session, "", mount.ByPath, st.server.Wait)
}

// differs notes a row and reports whether the page has another one.
func (st *stream) differs(f row) bool {
	data, err := json.Marshal(f)
	if err != nil {
		return false
	}
	sum := maphash.Bytes(seed, data)
	if old, ok := st.rows[f.Identity]; ok && old == sum {
		return false
	}
	st.rows[f.Identity] = sum
	return true
}

// put sends one message.
func (st *stream) put(u update) error {
	if u.Rows == nil {
		u.Rows = []row{}
	}
	if u.Gone == nil {
		u.Gone = []string{}
	}
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return st.write(b.Bytes())
}

func (st *stream) write(message []byte) error {
	if _, err := st.w.Write(message); err != nil {
		return err
	}
	return st.out.Flush()
}
