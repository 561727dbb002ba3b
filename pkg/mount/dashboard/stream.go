package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/ledger"
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
	st := &stream{
		server: s, follower: s.Store.Follow(s.Session), w: w, out: http.NewResponseController(w),
		reset: true, rows: map[string]sent{},
	}
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

// stream is one open page.
type stream struct {
	server   *Server
	follower *ledger.Follower
	w        http.ResponseWriter
	out      *http.ResponseController
	reset    bool
	context  contextSize
	rows     map[string]sent // by identity, what the page has
}

// contextSize is what freshness depends on, beside a row's own entry.
type contextSize struct{ used, window int64 }

// sent is a row that the page has: what it was made of, and a hash of its text.
type sent struct {
	entry *ledger.Entry
	sum   uint64
}

var seed = maphash.MakeSeed()

// send reads the session and sends what differs from what the page has: first
// the files that were touched, then those whose freshness alone is another.
func (st *stream) send(ctx context.Context) error {
	state, _, err := st.follower.Next(ctx, st.server.Wait)
	if err != nil {
		return st.put(update{Head: head{Session: st.server.Session, Problem: err.Error()}})
	}
	now := mount.StatusOf(st.server.Session, state, st.server.Config, "", mount.ByPath)
	size := contextSize{state.Used, state.Window}
	touched, aged := st.sort(now.Files, size != st.context)
	st.context = size
	u := update{Head: headOf(now), Reset: st.reset, Gone: st.gone(state)}
	st.reset = false
	if err := st.sendRows(&u, touched); err != nil {
		return err
	}
	if len(aged) == 0 {
		return nil
	}
	return st.sendRows(&u, aged)
}

func headOf(now mount.Status) head {
	return head{
		Session: now.Session, Seq: now.Seq, ContextUsed: now.ContextUsed, ContextWindow: now.ContextWindow,
		Threshold: now.Threshold, Totals: now.Totals,
	}
}

// sort gives the rows that the page does not have as they are now, those of
// touched files apart from those that only aged.
func (st *stream) sort(files []mount.FileStatus, aging bool) (touched, aged []row) {
	for _, file := range files {
		entry := file.Entry()
		old := st.rows[file.Identity]
		if old.entry == entry && !aging {
			continue
		}
		f := row{file, entry.Key, entry.At}
		sum, ok := hash(f)
		st.rows[file.Identity] = sent{entry, sum}
		switch {
		case !ok || old.sum == sum:
		case old.entry == entry:
			aged = append(aged, f)
		default:
			touched = append(touched, f)
		}
	}
	return touched, aged
}

// gone forgets the files that are no longer there, and names them.
func (st *stream) gone(state *ledger.State) (gone []string) {
	for id := range st.rows {
		if state.Files[id] == nil {
			gone = append(gone, id)
			delete(st.rows, id)
		}
	}
	return gone
}

// sendRows sends u with rows, in as many messages as they need.
func (st *stream) sendRows(u *update, rows []row) error {
	for more := true; more; {
		n := min(batch, len(rows))
		u.Rows, rows = rows[:n], rows[n:]
		more = len(rows) > 0
		u.More = more
		if err := st.put(*u); err != nil {
			return err
		}
		u.Reset, u.Gone = false, nil
	}
	return nil
}

// hash is false for what cannot be sent.
func hash(f row) (uint64, bool) {
	data, err := json.Marshal(f)
	return maphash.Bytes(seed, data), err == nil
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
