package mount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// desk is a Mount whose clock and files the test turns.
type desk struct {
	*player
	clock time.Time
}

func newDesk(t *testing.T) *desk {
	d := &desk{player: newPlayer(t, nil, 0), clock: time.Now().Add(time.Hour)}
	d.mount.Now = func() time.Time { return d.clock }
	d.mount.Store.Now = d.mount.Now
	return d
}

func (d *desk) file(name, text string) {
	d.t.Helper()
	d.check(os.WriteFile(d.path(name), []byte(text), 0o644))
}

// ask reads a whole file.
func (d *desk) ask(path string) *Answer {
	d.t.Helper()
	var a *Answer
	err := d.mount.Read(context.Background(), remotefs.AtPath(path, ""), remotefs.WindowOptions{Offset: 1, Limit: 2000},
		Call{Session: "main", Wait: time.Minute}, func(got *Answer) error { a = got; return nil })
	d.check(err)
	return a
}

func (d *desk) expect(path string, kind Kind, reason string) *Answer {
	d.t.Helper()
	a := d.ask(path)
	if a.Kind != kind || a.Reason != reason {
		d.t.Errorf("%s is %s (%s), want %s (%s)", path, a.Kind, a.Reason, kind, reason)
	}
	return a
}

// C10: a draft that was deleted costs a whole window and no error.
func TestMissingDraftSendsTheWholeWindow(t *testing.T) {
	d := newDesk(t)
	d.file("a.txt", gen(1, 20))
	d.ask("a.txt")
	d.check(os.RemoveAll(filepath.Join(d.mount.Store.Dir, "main", "drafts")))
	d.file("a.txt", strings.Replace(gen(1, 20), "5x", "changed", 1))
	if a := d.expect("a.txt", Remount, "no-draft"); len(a.Lines) != 20 {
		t.Errorf("%d lines", len(a.Lines))
	}
}

// A draft that was damaged, or made with another key, counts as missing.
func TestForeignDraftCountsAsMissing(t *testing.T) {
	for name, spoil := range map[string]func(d *desk, path string){
		"damaged": func(d *desk, path string) {
			data, err := os.ReadFile(path)
			d.check(err)
			data[len(data)/2] ^= 1
			d.check(os.WriteFile(path, data, 0o600))
		},
		"short": func(d *desk, path string) { d.check(os.Truncate(path, 40)) },
		"key":   func(d *desk, _ string) { d.check(os.Remove(filepath.Join(d.mount.Store.Dir, "main", "meta.json"))) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.file("a.txt", gen(1, 20))
			hash := *d.ask("a.txt").Hash
			spoil(d, filepath.Join(d.mount.Store.Dir, "main", "drafts", hash))
			d.file("a.txt", strings.Replace(gen(1, 20), "5x", "changed", 1))
			d.expect("a.txt", Remount, "no-draft")
		})
	}
}

// counting counts the contents that were read.
type counting struct {
	remotefs.FS
	reads int
}

func (c *counting) ReadBytes(ctx context.Context, at remotefs.At, limit int64) (remotefs.Bytes, error) {
	c.reads++
	return c.FS.ReadBytes(ctx, at, limit)
}

// C11: the same content and stat: believed without a transfer until ttlMs have
// passed, then hashed again, and a dedupe both times. A clock that jumps back
// is not believed.
func TestStatIsBelievedForAWhile(t *testing.T) {
	d := newDesk(t)
	d.mount.Config.ValveReads = 0
	c := &counting{FS: d.files}
	d.mount.Files = c
	d.file("a.txt", gen(1, 20))
	d.ask("a.txt")
	start := d.clock
	for _, step := range []struct {
		after time.Duration
		reads int
	}{{time.Minute, 1}, {5*time.Minute - time.Millisecond, 1}, {5 * time.Minute, 2}, {6 * time.Minute, 2}, {-time.Minute, 3}} {
		d.clock = start.Add(step.after)
		d.expect("a.txt", Dedupe, "full-cover")
		if c.reads != step.reads {
			t.Errorf("after %s: %d transfers, want %d", step.after, c.reads, step.reads)
		}
	}
}

// coarse is a world whose versions say size and second of change only.
type coarse struct{ remotefs.FS }

func (c coarse) Stat(ctx context.Context, at remotefs.At) (remotefs.Target, *remotefs.Info, error) {
	t, info, err := c.FS.Stat(ctx, at)
	if info != nil {
		weak := *info
		weak.Version = fmt.Sprintf("%d:%d", info.Size, info.ModTime.Unix())
		info = &weak
	}
	return t, info, err
}

// C12: content changed with size and time restored: seen at once where the
// world tells more, and at the latest after ttlMs where it does not.
func TestDisguisedChange(t *testing.T) {
	for name, weak := range map[string]bool{"with ctime": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if weak {
				d.mount.Files = coarse{d.files}
			}
			d.file("a.txt", gen(1, 20))
			d.ask("a.txt")
			info, err := os.Stat(d.path("a.txt"))
			d.check(err)
			d.file("a.txt", strings.Replace(gen(1, 20), "5x", "5y", 1))
			d.check(os.Chtimes(d.path("a.txt"), info.ModTime(), info.ModTime()))
			if weak {
				d.expect("a.txt", Dedupe, "full-cover")
				d.clock = d.clock.Add(6 * time.Minute)
			}
			d.expect("a.txt", Remount, "line-diff")
		})
	}
}

// C13: a file written again within the tick of its first read, with equal size.
func TestRewriteWithinTheClockTick(t *testing.T) {
	d := newDesk(t)
	d.mount.Files = coarse{d.files}
	d.file("a.txt", gen(1, 20))
	now := time.Now()
	d.check(os.Chtimes(d.path("a.txt"), now, now))
	d.clock = now.Add(time.Second)
	d.ask("a.txt")
	d.file("a.txt", strings.Replace(gen(1, 20), "5x", "5y", 1))
	d.check(os.Chtimes(d.path("a.txt"), now, now))
	d.expect("a.txt", Remount, "line-diff")
}

// C14: what cannot be read gives the read's own error, and records nothing.
func TestErrorsAreThoseOfTheRead(t *testing.T) {
	d := newDesk(t)
	d.check(os.Symlink("loop", d.path("loop")))
	d.check(os.Mkdir(d.path("dir"), 0o755))
	d.file("binary", "a\x00b")
	d.file("latin", "caf\xe9\n")
	for _, path := range []string{"loop", "dir", "/dev/null", "binary", "latin", "nosuch", "dir/nosuch", "binary/below"} {
		_, want := remotefs.ReadView(context.Background(), d.files, remotefs.AtPath(path, ""), remotefs.WindowOptions{Offset: 1, Limit: 1})
		got := d.mount.Read(context.Background(), remotefs.AtPath(path, ""), remotefs.WindowOptions{Offset: 1, Limit: 1},
			Call{Session: "main", Wait: time.Minute}, func(*Answer) error { t.Errorf("%s is answered", path); return nil })
		if want == nil || got == nil || fault.CodeOf(got) != fault.CodeOf(want) || got.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	s, _, err := d.mount.Store.Peek(context.Background(), "main", time.Minute)
	d.check(err)
	if len(s.Files) != 0 || s.Seq != 0 {
		t.Errorf("recorded: seq %d, %d files", s.Seq, len(s.Files))
	}
}

// C15: no file name forges a marker or breaks its line, and the hint names the
// file.
func TestNamesInMarkers(t *testing.T) {
	for name, want := range map[string][2]string{
		"a b.txt":          {"a b.txt", "'a b.txt'"},
		"it's.txt":         {"it's.txt", `'it'\''s.txt'`},
		`say "x".txt`:      {`"say \"x\".txt"`, `'say "x".txt'`},
		"a]b.txt":          {`"a]b.txt"`, "'a]b.txt'"},
		"a\nb.txt":         {`"a\nb.txt"`, `$'a\012b.txt'`},
		"a\x1b[2J\x7f.txt": {"\"a\\u001b[2J\\u007f.txt\"", `$'a\033[2J\177.txt'`},
		"x] unchanged\n'":  {`"x] unchanged\n'"`, `$'x] unchanged\012\''`},
		"-rf":              {"-rf", "-- -rf"},
		"$(touch x)":       {"$(touch x)", "'$(touch x)'"},
	} {
		d := newDesk(t)
		d.file(name, gen(1, 20))
		d.ask("./" + name)
		marker := *d.expect("./"+name, Dedupe, "full-cover").Marker
		if !strings.HasPrefix(marker, "[mount "+want[0]+" @") || !strings.HasSuffix(marker, "run: afield mount forget "+want[1]) || strings.Contains(marker, "\n") {
			t.Errorf("%q: %s", name, marker)
		}
	}
}

// C16: the same path in two worlds is two files.
func TestTwoWorldsWithOnePath(t *testing.T) {
	d := newDesk(t)
	d.file("a.txt", gen(1, 20))
	d.expect("a.txt", New, "first-read")
	d.mount.World = "there"
	d.expect("a.txt", New, "first-read")
	d.mount.World = "here"
	d.expect("a.txt", Dedupe, "full-cover")
}

// folding is a world that takes names that differ in case for one.
type folding struct {
	remotefs.FS
	dir string
}

func (f folding) Stat(ctx context.Context, at remotefs.At) (remotefs.Target, *remotefs.Info, error) {
	t, _, err := f.FS.Stat(ctx, at)
	if err != nil || !strings.HasPrefix(t.Key, f.dir) {
		return t, nil, err
	}
	name := strings.ToLower(strings.TrimPrefix(t.Key, f.dir))
	_, info, err := f.FS.Stat(ctx, remotefs.AtPath(f.dir+name, ""))
	return t, info, err
}

func (f folding) ReadBytes(ctx context.Context, at remotefs.At, limit int64) (remotefs.Bytes, error) {
	return f.FS.ReadBytes(ctx, remotefs.AtPath(f.dir+strings.ToLower(strings.TrimPrefix(at.Target.Key, f.dir)), ""), limit)
}

// C17: where case is folded, both spellings share an entry; where it is not,
// they are two files. The probe tells without writing.
func TestCaseFolding(t *testing.T) {
	d := newDesk(t)
	d.file("a.txt", gen(1, 20))
	d.mount.FoldsCase = func(ctx context.Context, key string) bool { return ProbeCase(ctx, d.mount.Files, key) }
	d.expect("a.txt", New, "first-read")
	if ProbeCase(context.Background(), d.files, d.path("a.txt")) {
		t.Fatal("this file system folds case: the test needs another one")
	}
	d.file("A.txt", gen(1, 20))
	d.expect("A.txt", New, "first-read")

	d = newDesk(t)
	d.file("a.txt", gen(1, 20))
	d.mount.Files = folding{d.files, d.dir}
	d.mount.FoldsCase = func(ctx context.Context, key string) bool { return ProbeCase(ctx, d.mount.Files, key) }
	d.expect("A.txt", New, "first-read")
	d.expect("a.txt", Dedupe, "full-cover")
}

// C18: a seq that goes backwards is a usage error that names rewind, and
// nothing is recorded.
func TestSeqBackwards(t *testing.T) {
	d := newDesk(t)
	d.file("a.txt", gen(1, 20))
	read := func(seq int64) error {
		return d.mount.Read(context.Background(), remotefs.AtPath("a.txt", ""), remotefs.WindowOptions{Offset: 1, Limit: 2000},
			Call{Session: "main", Seq: &seq, Wait: time.Minute}, func(*Answer) error { return nil })
	}
	d.check(read(7))
	d.check(read(7))
	before, err := os.ReadFile(d.mount.Store.JournalPath("main"))
	d.check(err)
	if err := read(6); !fault.Is(err, fault.Usage) || !strings.Contains(fmt.Sprint(err.(*fault.Error).Hint), "rewind --to 6") {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(d.mount.Store.JournalPath("main")); string(after) != string(before) {
		t.Error("something was recorded")
	}
}

// C19: a rewind beyond the kept history leaves an empty ledger.
func TestRewindBeyondTheHistory(t *testing.T) {
	d := newDesk(t)
	d.mount.Config.ValveReads = 0
	d.mount.Store.Limits = ledger.Limits{Tail: 500, Growth: 4000, History: 3}
	d.file("a.txt", gen(1, 20))
	for range 40 {
		d.ask("a.txt")
	}
	totals := d.ask("a.txt").Total
	a, err := d.mount.Rewind(context.Background(), 2, Call{Session: "main", Wait: time.Minute})
	d.check(err)
	if a.DroppedFiles != 1 || a.Seq != 2 {
		t.Errorf("%+v", a)
	}
	now := d.expect("a.txt", New, "first-read")
	if *now.Seq != 3 || now.Total != totals {
		t.Errorf("seq %d, totals %+v, want %+v", *now.Seq, now.Total, totals)
	}
}

// The session's context is remembered, and an answer that changes nothing takes
// no seq.
func TestNothingToRecord(t *testing.T) {
	d := newDesk(t)
	d.file("a.txt", gen(1, 20))
	d.file("short.txt", "x\n")
	d.expect("short.txt", New, "first-read")
	a := d.expect("short.txt", Passthrough, "below-min")
	if *a.Seq != 1 {
		t.Errorf("seq %d", *a.Seq)
	}
	if a := d.expect("a.txt", New, "first-read"); *a.Seq != 2 {
		t.Errorf("seq %d", *a.Seq)
	}
}

// Options outside their bounds are profile errors.
func TestConfigBounds(t *testing.T) {
	if err := DefaultConfig().Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"capacity": func(c *Config) { c.Capacity = 0 }, "ttlMs": func(c *Config) { c.TTL = 999 * time.Millisecond },
		"maxPinnedFiles": func(c *Config) { c.MaxPinnedFiles = 0 }, "minSavedTokens": func(c *Config) { c.MinSavedTokens = -1 },
		"maxFingerprintBytes": func(c *Config) { c.MaxFingerprintBytes = 0 }, "maxManagedBytes": func(c *Config) { c.MaxManagedBytes = 0 },
		"freshnessThreshold": func(c *Config) { c.FreshnessThreshold = 1.1 }, "safeRatio": func(c *Config) { c.SafeRatio = -0.1 },
		"safeTokens": func(c *Config) { c.SafeTokens = -2 }, "pinAfter": func(c *Config) { c.PinAfter = -1 },
		"contextWindow": func(c *Config) { c.ContextWindow = 0 }, "resendBudget": func(c *Config) { c.ResendBudget = -2 },
		"valveReads": func(c *Config) { c.ValveReads = -1 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Check(); !fault.Is(err, fault.ProfileInvalid) || !strings.Contains(err.Error(), "mount."+name+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := DefaultConfig()
	c.Session = ".x"
	if c.Check() == nil {
		t.Error("a bad session id passes")
	}
}

// Drafts of files that are not mounted any more are sorted out.
func TestDraftsAreSortedOut(t *testing.T) {
	d := newDesk(t)
	d.mount.Store.MaxDrafts, d.mount.Store.SpareDrafts = 4, 2
	for i := range 100 {
		name := fmt.Sprintf("f%d.txt", i)
		d.file(name, gen(i, i+20))
		d.clock = d.clock.Add(time.Second)
		d.ask(name)
	}
	entries, err := os.ReadDir(filepath.Join(d.mount.Store.Dir, "main", "drafts"))
	d.check(err)
	if len(entries) > 4+2+64 {
		t.Errorf("%d drafts", len(entries))
	}
	d.file("f99.txt", strings.Replace(gen(99, 119), "105x", "changed", 1))
	d.expect("f99.txt", Remount, "line-diff")
}
