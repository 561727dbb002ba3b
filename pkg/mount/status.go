package mount

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// yuanPerMillion is the price of a million tokens in CNY.
const yuanPerMillion = 1.0

// Status is what a session holds (mount.md 17.2).
type Status struct {
	Session       string       `json:"session"`
	Seq           int64        `json:"seq"`
	ContextUsed   *int64       `json:"contextUsed"`
	ContextWindow int64        `json:"contextWindow"`
	Threshold     float64      `json:"threshold"`
	Totals        StatusTotals `json:"totals"`
	Files         []FileStatus `json:"files"`
}

// StatusTotals are the sums of a session. Net is not below 0; CNY is its price
// to two decimals.
type StatusTotals struct {
	SavedTokens    int64   `json:"savedTokens"`
	OverheadTokens int64   `json:"overheadTokens"`
	NetTokens      int64   `json:"netTokens"`
	CNY            float64 `json:"cny"`
}

// FileStatus is one row.
type FileStatus struct {
	Path            string         `json:"path"`
	Identity        string         `json:"identity"`
	Hash            string         `json:"hash"`
	TotalLines      int            `json:"totalLines"`
	MountedLines    int            `json:"mountedLines"`
	CoveragePercent int            `json:"coveragePercent"`
	LastKind        string         `json:"lastKind"`
	Changed         bool           `json:"changed"`
	Ranges          []ledger.Range `json:"ranges"`
	Worst           Level          `json:"worst"`
	Segments        []SegmentState `json:"segments"`
	SavedTokens     int64          `json:"savedTokens"`
	OverheadTokens  int64          `json:"overheadTokens"`
	NetTokens       int64          `json:"netTokens"`
	// Stale is set by Check to a *bool: whether the file differs from what was
	// remembered, nil when that cannot be told.
	Stale any `json:"stale,omitempty"`

	entry *ledger.Entry
}

// Entry is what the ledger holds of the file; it must not be changed.
func (f FileStatus) Entry() *ledger.Entry { return f.entry }

// Order is how rows are sorted.
type Order string

// The orders: by unfloored net, largest first and ties in order of the last
// answer; or by identity path.
const (
	ByNet  Order = "net"
	ByPath Order = "path"
)

// StatusOf gives the rows of a state that match search, in order.
func StatusOf(session string, s *ledger.State, c Config, search string, order Order) Status {
	u := (&Mount{Config: c}).usage(s.Base, Call{})
	st := Status{
		Session: session, Seq: s.Seq, ContextUsed: known(u.used), ContextWindow: u.window,
		Threshold: c.FreshnessThreshold, Totals: statusTotals(s.Totals), Files: []FileStatus{},
	}
	search = strings.ToLower(strings.TrimSpace(search))
	for _, e := range s.Files {
		if strings.Contains(strings.ToLower(e.Key), search) {
			st.Files = append(st.Files, c.row(e, u))
		}
	}
	slices.SortFunc(st.Files, order.compare)
	return st
}

func (o Order) compare(a, b FileStatus) int {
	byPath := cmp.Or(cmp.Compare(a.entry.Key, b.entry.Key), cmp.Compare(a.Identity, b.Identity))
	if o == ByPath {
		return byPath
	}
	return cmp.Or(cmp.Compare(b.entry.Net(), a.entry.Net()), a.entry.At.Compare(b.entry.At), byPath)
}

func statusTotals(t ledger.Totals) StatusTotals {
	net := max(0, t.Net())
	return StatusTotals{t.Saved, t.Overhead, net, math.Round(float64(net)/1e6*yuanPerMillion*100) / 100}
}

// row gives the row of a file.
func (c Config) row(e *ledger.Entry, u usage) FileStatus {
	ranges := ledger.Mounted(e.Segments)
	f := FileStatus{
		Path: e.Path, Identity: e.Identity, Hash: e.Hash, TotalLines: e.Total, MountedLines: ledger.CountLines(ranges),
		LastKind: e.Kind, Changed: e.Kind == string(Remount) || e.Kind == string(Append),
		Ranges: ranges, Segments: c.segmentStates(e.Segments, u),
		SavedTokens: e.Saved, OverheadTokens: e.Overhead, NetTokens: max(0, e.Net()), entry: e,
	}
	f.CoveragePercent = percent(f.MountedLines, f.TotalLines)
	f.Worst = worstOf(f.Segments)
	return f
}

func percent(part, whole int) int {
	if whole == 0 {
		return 0
	}
	return min(100, int(math.Round(100*float64(part)/float64(whole))))
}

// Status gives what a session holds. It writes nothing; a session that nobody
// has used is empty.
func (m *Mount) Status(ctx context.Context, session string, search string, order Order, wait time.Duration) (Status, error) {
	s, warnings, err := m.Store.Peek(ctx, session, wait)
	if err != nil {
		return Status{}, ledgerFault(ctx, err, session)
	}
	for _, w := range warnings {
		m.warn(w)
	}
	return StatusOf(session, s, m.Config, search, order), nil
}

// Check looks at each file of this world and says whether it has changed since
// its content was last verified.
func (m *Mount) Check(ctx context.Context, st *Status) error {
	for i := range st.Files {
		f := &st.Files[i]
		if f.entry.World != m.World {
			continue
		}
		t := remotefs.Target{Key: f.entry.Key, Display: f.entry.Key}
		_, info, err := m.Files.Stat(ctx, remotefs.AtTarget(t))
		if fault.Is(err, fault.FSAborted) {
			return err
		}
		f.Stale = stale(f.entry, info, err)
	}
	return nil
}

// stale compares a file with what was remembered of it; nil = not known.
func stale(e *ledger.Entry, info *remotefs.Info, err error) *bool {
	var answer bool
	switch {
	case err != nil:
		return nil
	case info == nil, info.Type != remotefs.TypeFile, info.Size >= 0 && info.Size != e.Size:
		answer = true
	case e.Stamp == nil:
		return nil
	default:
		answer = e.Stamp.Version != info.Version || !e.Stamp.ModTime.Equal(info.ModTime)
	}
	return &answer
}

// ProbeCase reports whether a file system takes names that differ in case for
// one, without writing: the deepest existing component of key that has a letter
// is looked up in the other case (mount.md 10). It is meant for worlds where a
// look costs no round trip.
func ProbeCase(ctx context.Context, files remotefs.FS, key string) bool {
	for ; key != "/" && key != "."; key = path.Dir(key) {
		swapped, ok := swapCase(path.Base(key))
		if !ok {
			continue
		}
		_, here, err := files.Stat(ctx, remotefs.AtPath(key, "/"))
		if err != nil || here == nil {
			continue
		}
		_, there, err := files.Stat(ctx, remotefs.AtPath(path.Join(path.Dir(key), swapped), "/"))
		return err == nil && there != nil && here.Version == there.Version
	}
	return false
}
