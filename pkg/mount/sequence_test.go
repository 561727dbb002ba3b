package mount

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// sequence is one numbered case of mount.md 20.
type sequence struct {
	N      int
	Name   string
	Config map[string]json.RawMessage
	Steps  []step
	Totals struct{ Saved, Overhead int64 }
}

// generator makes numbered lines.
type generator struct {
	From, To int
	Pad      *int
	Ch       *string
	EOL      *string
	Last     *bool
	Prefix   string
}

type step struct {
	Do, Path, As, Session  string
	To                     word
	Gen                    *generator
	Text, B64, Suffix      *string
	Lines                  []string
	Old, New               string
	All                    bool
	Sec                    int64
	Offset, Limit, Through *int
	Used                   *int64
	Shadow                 []int
	Expect                 *expectation
}

type expectation struct {
	Kind, Reason            string
	Window                  *pair
	Sent                    []pair
	TotalLines              int
	Saved, Overhead, Resent int
	Mounted                 []pair
	Marker                  *string
	Change                  *Change
	Valve                   *int
	Segments                []json.RawMessage
	Forgotten               bool
}

// word is a path or a number.
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	*w = word(strings.Trim(string(data), `"`))
	return nil
}

func (g generator) bytes() string {
	pad, ch, eol := 39, "x", "\n"
	set(&pad, g.Pad)
	set(&ch, g.Ch)
	set(&eol, g.EOL)
	var b strings.Builder
	for i := g.From; i <= g.To; i++ {
		fmt.Fprintf(&b, "%s%d%s", g.Prefix, i, strings.Repeat(ch, pad))
		if i < g.To || g.Last == nil || *g.Last {
			b.WriteString(eol)
		}
	}
	return b.String()
}

func (s step) content(t *testing.T) string {
	t.Helper()
	switch {
	case s.Gen != nil:
		return s.Gen.bytes()
	case s.Text != nil:
		return *s.Text
	case s.B64 != nil:
		data, err := base64.StdEncoding.DecodeString(*s.B64)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return strings.Join(s.Lines, "\n") + "\n"
}

// player runs a sequence on real files.
type player struct {
	t      *testing.T
	dir    string
	files  remotefs.FS
	mount  *Mount
	hook   string
	seqs   []int64 // by step, that of its answer
	totals map[string]Sums
}

func newPlayer(t *testing.T, config map[string]json.RawMessage, later time.Duration) *player {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := remotefs.New(local.NewDriver(dir), remotefs.Options{})
	now := func() time.Time { return time.Now().Add(later) }
	c := DefaultConfig()
	for key, value := range config {
		if err := setKey(&c, key, value); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	m := &Mount{
		Files: files, World: "here", Cwd: dir, Config: c, Now: now,
		Store: &ledger.Store{Dir: filepath.Join(t.TempDir(), "v1"), Now: now, MaxDrafts: c.MaxPinnedFiles, SpareDrafts: c.Capacity},
		Warn:  func(line string) { t.Errorf("warning: %s", line) },
	}
	return &player{t: t, dir: dir, files: files, mount: m, totals: map[string]Sums{}}
}

// setKey sets the value of one key of mount.md 2.
func setKey(c *Config, key string, raw json.RawMessage) error {
	fields := map[string]any{
		"enabled": &c.Enabled, "capacity": &c.Capacity, "maxPinnedFiles": &c.MaxPinnedFiles,
		"minSavedTokens": &c.MinSavedTokens, "maxFingerprintBytes": &c.MaxFingerprintBytes,
		"maxManagedBytes": &c.MaxManagedBytes, "excludeGlobs": &c.ExcludeGlobs,
		"freshnessEnabled": &c.FreshnessEnabled, "freshnessThreshold": &c.FreshnessThreshold,
		"safeRatio": &c.SafeRatio, "safeTokens": &c.SafeTokens, "pinAfter": &c.PinAfter,
		"contextWindow": &c.ContextWindow, "resendBudget": &c.ResendBudget, "valveReads": &c.ValveReads,
	}
	at, ok := fields[key]
	if !ok {
		return fmt.Errorf("no such key")
	}
	return json.Unmarshal(raw, at)
}

func (p *player) path(name string) string { return filepath.Join(p.dir, name) }

func (p *player) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) call(s step) Call {
	used := int64(10)
	set(&used, s.Used)
	c := Call{Session: "main", Used: &used, Wait: time.Minute}
	if s.Session != "" {
		c.Session = s.Session
	}
	return c
}

// play runs one step.
func (p *player) play(s step) {
	p.t.Helper()
	ctx, seq := context.Background(), int64(-1)
	switch s.Do {
	case "disk":
		p.check(os.MkdirAll(filepath.Dir(p.path(s.Path)), 0o755))
		p.check(os.WriteFile(p.path(s.Path), []byte(s.content(p.t)), 0o644))
	case "append":
		f, err := os.OpenFile(p.path(s.Path), os.O_APPEND|os.O_WRONLY, 0)
		p.check(err)
		_, err = f.WriteString(s.content(p.t))
		p.check(err)
		p.check(f.Close())
	case "rm":
		p.check(os.Remove(p.path(s.Path)))
	case "symlink":
		p.check(os.Symlink(p.path(string(s.To)), p.path(s.Path)))
	case "rename":
		p.check(os.Rename(p.path(s.Path), p.path(string(s.To))))
	case "mtime":
		p.check(os.Chtimes(p.path(s.Path), time.Unix(s.Sec, 0), time.Unix(s.Sec, 0)))
	case "hook":
		p.hook = *s.Suffix
	case "read":
		seq = p.read(ctx, s)
	case "write":
		seq = p.write(ctx, s)
	case "edit":
		_, err := p.files.EditText(ctx, remotefs.AtPath(s.Path, ""), remotefs.EditRequest{Edits: []remotefs.Edit{{Old: s.Old, New: s.New, All: s.All}}})
		p.check(err)
		a, err := p.mount.Edited(ctx, remotefs.AtPath(s.Path, ""), p.call(s))
		p.check(err)
		if a.Kind != s.Expect.Kind {
			p.t.Errorf("edit: %+v", a)
		}
		seq = a.Seq
	case "forget":
		a, err := p.mount.Forget(ctx, []string{s.Path}, p.call(s))
		p.check(err)
		if a.Forgotten != s.Expect.Forgotten {
			p.t.Errorf("forget: %+v", a)
		}
		seq = a.Seq
	case "compact":
		gone := ledger.Carriers{}
		if s.Through != nil {
			gone.Through = &p.seqs[*s.Through]
		}
		for _, n := range s.Shadow {
			gone.List = append(gone.List, [2]int64{p.seqs[n], p.seqs[n]})
		}
		_, err := p.mount.Compact(ctx, gone, Call{Session: "main", Wait: time.Minute})
		p.check(err)
	case "rewind":
		to := int64(0)
		if s.To != "-1" {
			var n int
			_, err := fmt.Sscan(string(s.To), &n)
			p.check(err)
			to = p.seqs[n]
		}
		_, err := p.mount.Rewind(ctx, to, Call{Session: "main", Wait: time.Minute})
		p.check(err)
	case "fork":
		_, err := p.mount.Fork(ctx, s.As, nil, Call{Session: "main", Wait: time.Minute})
		p.check(err)
	default:
		p.t.Fatalf("unknown step %q", s.Do)
	}
	p.seqs = append(p.seqs, seq)
}

func (p *player) write(ctx context.Context, s step) int64 {
	p.t.Helper()
	p.check(os.WriteFile(p.path(s.Path), []byte(s.content(p.t)+p.hook), 0o644))
	a, err := p.mount.Wrote(ctx, remotefs.AtPath(s.Path, ""), []byte(s.content(p.t)), p.call(s))
	p.check(err)
	reason := ""
	set(&reason, a.Reason)
	if a.Kind != s.Expect.Kind || reason != s.Expect.Reason {
		p.t.Errorf("write: %s (%s), want %+v", a.Kind, reason, s.Expect)
	}
	if a.Kind == "known" && (!cmp.Equal(a.Mounted, ranges(s.Expect.Mounted)) || a.TotalLines != s.Expect.TotalLines) {
		p.t.Errorf("write: %+v, want %+v", a, s.Expect)
	}
	return a.Seq
}

func (p *player) read(ctx context.Context, s step) int64 {
	p.t.Helper()
	opts := remotefs.WindowOptions{Offset: 1, Limit: remotefs.DefaultReadLimit}
	set(&opts.Offset, s.Offset)
	set(&opts.Limit, s.Limit)
	var a *Answer
	err := p.mount.Read(ctx, remotefs.AtPath(s.Path, ""), opts, p.call(s), func(got *Answer) error {
		a = got
		return nil
	})
	if s.Expect.Kind == "error" {
		if !fault.Is(err, fault.FSNotFound) || strings.Contains(err.Error(), "out of range") != (s.Expect.Reason == "offset-out-of-range") {
			p.t.Errorf("error %v, want %s", err, s.Expect.Reason)
		}
		return -1
	}
	p.check(err)
	p.compare(a, s.Expect)
	p.native(ctx, a, s, opts)
	p.totals[p.call(s).Session] = a.Total
	if a.Seq == nil {
		return -1
	}
	return *a.Seq
}

// compare holds an answer against a vector.
func (p *player) compare(a *Answer, want *expectation) {
	p.t.Helper()
	got := &expectation{
		Kind: string(a.Kind), Reason: a.Reason, TotalLines: a.TotalLines, Saved: a.Tokens.Saved,
		Overhead: a.Tokens.Overhead, Resent: a.Tokens.Resent, Marker: a.Marker, Change: a.Change,
	}
	if a.Window != nil {
		got.Window = &pair{a.Window.Start, a.Window.End}
	}
	for _, r := range a.Sent {
		got.Sent = append(got.Sent, pair{r.Start, r.End})
	}
	if want.Valve != nil {
		got.Valve = &a.Valve.Count
		for _, r := range a.Mounted {
			got.Mounted = append(got.Mounted, pair{r.Start, r.End})
		}
		for _, s := range a.Freshness.Segments {
			raw, err := json.Marshal([]any{s.Start, s.End, s.Expired, s.Position, s.Level})
			p.check(err)
			got.Segments = append(got.Segments, raw)
		}
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Transformer("json", compact)); d != "" {
		p.t.Errorf("answer: %s", d)
	}
	numbers := []int{}
	for _, l := range a.Lines {
		numbers = append(numbers, l.Number)
	}
	wantNumbers := []int{}
	for _, r := range a.Sent {
		for n := r.Start; n <= r.End; n++ {
			wantNumbers = append(wantNumbers, n)
		}
	}
	if d := cmp.Diff(wantNumbers, numbers); d != "" {
		p.t.Errorf("lines are not those sent: %s", d)
	}
}

func compact(raw json.RawMessage) string {
	return strings.ReplaceAll(string(raw), " ", "")
}

// native holds that an answer without a marker is the text of a view.
func (p *player) native(ctx context.Context, a *Answer, s step, opts remotefs.WindowOptions) {
	p.t.Helper()
	if a.Marker != nil {
		return
	}
	v, err := remotefs.ReadView(ctx, p.files, remotefs.AtPath(s.Path, ""), opts)
	p.check(err)
	if d := cmp.Diff(v.Render(v.Target.Display), a.Text); d != "" {
		p.t.Errorf("not the text of a view: %s", d)
	}
}

// Cases 1 to 117 of mount.md 20, each on files that have just been written and
// on files whose stat is old enough to be believed.
func TestSequences(t *testing.T) {
	v := loadVectors(t).Sequences
	count(t, len(v), 117)
	for i, s := range v {
		if s.N != i+1 {
			t.Fatalf("case %d stands at place %d", s.N, i+1)
		}
		for name, later := range map[string]time.Duration{"fresh": 0, "settled": time.Hour} {
			t.Run(fmt.Sprintf("%d-%s/%s", s.N, s.Name, name), func(t *testing.T) {
				t.Parallel()
				p := newPlayer(t, s.Config, later)
				for _, step := range s.Steps {
					p.play(step)
				}
				got := p.totals["main"]
				if got.Saved != s.Totals.Saved || got.Overhead != s.Totals.Overhead {
					t.Errorf("totals %+v, want %+v", got, s.Totals)
				}
			})
		}
	}
}
