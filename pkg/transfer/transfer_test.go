package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

// bench is this machine, once by its own calls and once by its processes, as any
// far world is reached.
type bench struct {
	world *local.World
	shell *tree.Shell
}

func newBench(t *testing.T) *bench {
	t.Helper()
	w, err := local.Open(backend.OpenRequest{HostDir: "/", Environ: os.Environ(), NewFileMode: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.WithoutCancel(t.Context())) })
	return &bench{w, tree.NewShell(w.Processes())}
}

func (b *bench) host(t *testing.T, dir string, only ...string) *Host {
	t.Helper()
	h, err := NewHost(dir, true, remotefs.ArrangerOf(b.world.Files()), only...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func (b *bench) far(t *testing.T, dir string) *World {
	t.Helper()
	target, info, err := b.world.Files().Stat(context.WithoutCancel(t.Context()), remotefs.AtPath(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	return NewWorld(b.shell, target, info)
}

// ways are the three directions.
func ways() []string { return []string{"host to host", "push", "pull"} }

func (b *bench) sides(t *testing.T, way, src, dst string) (Place, Place) {
	t.Helper()
	switch way {
	case "push":
		return b.host(t, src), b.far(t, dst)
	case "pull":
		return b.far(t, src), b.host(t, dst)
	}
	return b.host(t, src), b.host(t, dst)
}

// plant makes or changes a random tree with hostile names.
func plant(r *rand.Rand, dir string) {
	names := []string{"a", "a b", "new\nline", "-rf", "--", "it's", "$(id)", "`id`", `back\slash`, "bad\xff", "*", ".hid", "é", "..x", "#", strings.Repeat("n", 250)}
	dirs := []string{dir}
	for range 40 {
		at := dirs[r.IntN(len(dirs))]
		p := filepath.Join(at, names[r.IntN(len(names))])
		when := time.Unix(1e9+r.Int64N(1e8), r.Int64N(1e9))
		switch r.IntN(8) {
		case 0, 1:
			if os.Mkdir(p, fs.FileMode(0o700|r.IntN(0o100))) == nil && len(p) < 3000 {
				dirs = append(dirs, p)
			}
		case 2:
			if os.Symlink([]string{"a", "../../..", "/etc/passwd", "no\nwhere"}[r.IntN(4)], p) == nil {
				setTime(p, when)
			}
		case 3:
			os.Remove(p)
		default:
			if st, err := os.Lstat(p); err == nil && !st.Mode().IsRegular() {
				continue
			}
			os.WriteFile(p, bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(3000)), 0o600)
			os.Chmod(p, fs.FileMode(0o400|r.IntN(0o400)))
			os.Chtimes(p, when, when)
		}
	}
	for _, d := range dirs {
		os.Chtimes(d, time.Unix(1e9+r.Int64N(1e8), 5e8), time.Unix(1e9+r.Int64N(1e8), 123456789))
	}
}

func setTime(p string, when time.Time) {
	exec.Command("touch", "-h", "-d", when.Format(time.RFC3339Nano), "--", p).Run()
}

// snapshot says all that matters of a tree.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		raw := st.Sys().(*syscall.Stat_t)
		facts := fmt.Sprintf("%o %d", raw.Mode, st.ModTime().UnixNano())
		switch {
		case st.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			facts += fmt.Sprintf(" %q", b[:min(len(b), 1)]) + fmt.Sprint(len(b))
		case st.Mode()&fs.ModeSymlink != 0:
			text, _ := os.Readlink(p)
			facts += " " + text
		}
		all[rel] = facts
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func rsync(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("rsync"); err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal("rsync is required")
		}
		t.Skip("SKIPPED: rsync is not installed")
	}
	if out, err := exec.Command("rsync", args...).CombinedOutput(); err != nil {
		t.Fatalf("rsync: %v %s", err, out)
	}
}

// Each way gives the tree that rsync -a gives, then a second run finds nothing to
// do, and after changes --delete gives what rsync -a --delete gives.
func TestTreesAreThoseOfRsync(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		src, peer := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "d")
		os.Mkdir(src, 0o755)
		plant(r, src)
		rsync(t, "-a", src+"/", peer)
		want := snapshot(t, peer)
		dsts := map[string]string{}
		for _, way := range ways() {
			dst := filepath.Join(t.TempDir(), "made", "d")
			dsts[way] = dst
			s, d := b.sides(t, way, src, dst)
			if _, err := Run(t.Context(), s, d, Options{}); err != nil {
				t.Fatalf("seed %d %s: %v", seed, way, err)
			}
			if diff := cmp.Diff(want, snapshot(t, dst)); diff != "" {
				t.Fatalf("seed %d %s (-rsync):\n%s", seed, way, diff)
			}
			s, d = b.sides(t, way, src, dst)
			sum, err := Run(t.Context(), s, d, Options{Checksum: seed%2 == 1})
			if err != nil || sum.Sent+sum.Deleted+sum.Skipped != 0 {
				t.Fatalf("seed %d %s again: %+v %v", seed, way, sum, err)
			}
		}
		plant(r, src)
		rsync(t, "-a", "--delete", src+"/", peer)
		want = snapshot(t, peer)
		for _, way := range ways() {
			s, d := b.sides(t, way, src, dsts[way])
			if _, err := Run(t.Context(), s, d, Options{Delete: true}); err != nil {
				t.Fatalf("seed %d %s: %v", seed, way, err)
			}
			if diff := cmp.Diff(want, snapshot(t, dsts[way])); diff != "" {
				t.Fatalf("seed %d %s --delete (-rsync):\n%s", seed, way, diff)
			}
		}
	}
}

// A dry run says what a run then does, and changes nothing.
func TestDryRunIsTrue(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(9, 9))
	src, dst := t.TempDir(), t.TempDir()
	plant(r, src)
	plant(r, dst)
	before := snapshot(t, dst)
	var told [2][]string
	for i, dry := range []bool{true, false} {
		_, err := Run(t.Context(), b.host(t, src), b.host(t, dst), Options{Delete: true, DryRun: dry, Event: func(e Event) {
			told[i] = append(told[i], string(e.Kind)+" "+e.Path)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if dry && cmp.Diff(before, snapshot(t, dst)) != "" {
			t.Fatal("a dry run changed something")
		}
	}
	sortStrings(told[0])
	sortStrings(told[1])
	if d := cmp.Diff(told[0], told[1]); d != "" || len(told[0]) == 0 {
		t.Errorf("told (-dry +run):\n%s", d)
	}
}

func sortStrings(list []string) {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// limited ends a context after so many events of progress.
type limited struct {
	left   int
	cancel context.CancelFunc
}

func (l *limited) progress(int64) {
	if l.left--; l.left == 0 {
		l.cancel()
	}
}

// Cut at random points, every file is the old one or the new one, nothing is left
// behind, and another run completes it: 200 times.
func TestCutLeavesOldOrNew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		src, dst := t.TempDir(), t.TempDir()
		for i := range 8 {
			name := fmt.Sprintf("d%d/f%d", i%3, i)
			for dir, c := range map[string]string{src: "new", dst: "old"} {
				os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
				os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(c, 4000+i)), 0o644)
			}
			os.Chtimes(filepath.Join(dst, name), time.Unix(1e9, 0), time.Unix(1e9, 0))
		}
		way := ways()[0]
		if seed%25 == 0 {
			way = ways()[1+seed/25%2]
		}
		ctx, cancel := context.WithCancel(t.Context())
		l := &limited{left: 1 + r.IntN(14), cancel: cancel}
		s, d := b.sides(t, way, src, dst)
		_, err := Run(ctx, s, d, Options{Progress: l.progress})
		cancel()
		for i := range 8 {
			name := fmt.Sprintf("d%d/f%d", i%3, i)
			got, rerr := os.ReadFile(filepath.Join(dst, name))
			if c := string(got); rerr != nil || c != strings.Repeat("old", 4000+i) && c != strings.Repeat("new", 4000+i) {
				t.Fatalf("seed %d %s: %s is a mixture (%d bytes, %v; run: %v)", seed, way, name, len(got), rerr, err)
			}
		}
		waitClean(t, dst)
		s, d = b.sides(t, way, src, dst)
		if _, err := Run(t.Context(), s, d, Options{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(snapshot(t, src), snapshot(t, dst)); diff != "" {
			t.Fatalf("seed %d %s: %s", seed, way, diff)
		}
	}
}

// waitClean waits until no staging is left; a far program cleans up by itself.
func waitClean(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		left := ""
		filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(d.Name(), remotefs.StageName) {
				left = p
			}
			return nil
		})
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is left", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A hostile far side can send what it likes: nothing is written that was not asked
// for, and nothing outside.
func TestHostileArchive(t *testing.T) {
	b := newBench(t)
	outside, dst := t.TempDir(), t.TempDir()
	os.Symlink(outside, filepath.Join(dst, "out"))
	h := b.host(t, dst)
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	asked := []string{"ok", "../up", "/abs" + outside, "out/in", "twice", "linked", "dir/x"}
	var files []entry
	for _, name := range asked {
		files = append(files, entry{path: name, kind: 'f', mode: 0o644, mtime: 1})
	}
	put := func(kind byte, name, link string) {
		h := &tar.Header{Typeflag: kind, Name: name, Linkname: link, Mode: 0o777}
		if kind == tar.TypeReg {
			h.Size = 4
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if kind == tar.TypeReg {
			tw.Write([]byte("evil"))
		}
	}
	for _, name := range append(asked, "unasked", "../unasked", outside+"/abs", "./out/../../x", "twice") {
		put(tar.TypeReg, name, "")
	}
	put(tar.TypeSymlink, "linked", outside)
	put(tar.TypeSymlink, "dir", outside)
	put(tar.TypeLink, "hard", "/etc/passwd")
	put(tar.TypeChar, "dev", "")
	put(tar.TypeReg, "dir/x", "")
	tw.Close()
	got, err := h.receive(t.Context(), tar.NewReader(&buf), files, renaming{}, &run{})
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]string, len(files))
	for i := range got {
		sums[i] = got[i].sum
	}
	out := h.settle(batch{files: files}, got, sums)
	h.discard(got)
	for i, name := range asked {
		if ok := out[i].failed == "" && !out[i].changed; ok != (name == "ok" || name == "twice" || name == "linked" || name == "dir/x") {
			t.Errorf("%s: %+v", name, out[i])
		}
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
	if left, _ := os.ReadDir(filepath.Dir(dst)); len(left) != 2 {
		t.Errorf("written beside: %v", left)
	}
	for _, name := range []string{"unasked", "hard", "dev", "x"} {
		if _, err := os.Lstat(filepath.Join(dst, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if st, err := os.Lstat(filepath.Join(dst, "dir")); err != nil || !st.IsDir() {
		t.Errorf("dir: %v %v", st, err)
	}
}

// A file that changes while it is sent is told, sent again, and whole in the end.
func TestChangingFileIsSentAgain(t *testing.T) {
	b := newBench(t)
	for _, way := range ways() {
		src, dst := t.TempDir(), filepath.Join(t.TempDir(), "d")
		file := filepath.Join(src, "f")
		os.WriteFile(file, bytes.Repeat([]byte("a"), 4<<20), 0o644)
		changed := false
		var kinds []Kind
		s, d := b.sides(t, way, src, dst)
		sum, err := Run(t.Context(), s, d, Options{
			Event: func(e Event) { kinds = append(kinds, e.Kind) },
			Progress: func(int64) {
				if !changed {
					changed = true
					f, _ := os.OpenFile(file, os.O_WRONLY, 0)
					f.WriteAt([]byte("b"), 4<<20-1)
					f.WriteAt([]byte("b"), 0)
					f.Close()
				}
			},
		})
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		if way != "pull" && sum.Retried == 0 { // by a pull the change may come whole before the file is read
			t.Errorf("%s: %v", way, kinds)
		}
		want, _ := os.ReadFile(file)
		got, _ := os.ReadFile(filepath.Join(dst, "f"))
		if !bytes.Equal(want, got) {
			t.Errorf("%s: the copy differs", way)
		}
	}
}

// What is no file, directory or link is said, and so is what is in the way.
func TestSkipsAreSaid(t *testing.T) {
	b := newBench(t)
	src, dst := t.TempDir(), t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(src, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(src, "x"), nil, 0o600)
	os.MkdirAll(filepath.Join(dst, "x/y"), 0o700)
	told := map[string]string{}
	sum, err := Run(t.Context(), b.host(t, src), b.host(t, dst), Options{Event: func(e Event) { told[e.Path] = e.Reason }})
	if err != nil || sum.Skipped != 2 || told["fifo"] == "" || told["x"] == "" {
		t.Errorf("%+v %v %v", sum, told, err)
	}
	if _, err := os.Stat(filepath.Join(dst, "x/y")); errors.Is(err, fs.ErrNotExist) {
		t.Error("what was in the way is gone")
	}
}
