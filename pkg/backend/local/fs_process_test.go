package local

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// order is what a child process is told to do; answer is what it says.
type order struct {
	Path, Old, New, Version string
	Op                      string // "edit", "create", "write" or "hang"
	Step                    string // of "hang": the step of a write after which nothing happens
}

type answer struct {
	Code    fault.Code
	Message string
}

const childVariable = "AFIELD_TEST_CHILD_STATE"

// TestFilesChild is no test of its own: it is the child that the tests below
// start, with the state directory in its environment.
func TestFilesChild(t *testing.T) {
	state := os.Getenv(childVariable)
	if state == "" {
		t.Skip("only as a child of another test")
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return
		}
		err := obey(state, o)
		a := answer{Code: fault.CodeOf(err)}
		if err != nil {
			a.Message = err.Error()
		}
		say(a)
	}
}

func say(v any) {
	b, _ := json.Marshal(v)
	fmt.Printf("\n> %s\n", b)
}

func obey(state string, o order) error {
	ctx := context.Background()
	driver := remotefs.Driver(NewDriver("/"))
	if o.Op == "hang" {
		driver = &hanging{Driver: NewDriver("/"), step: o.Step}
	}
	f := remotefs.New(driver, remotefs.Options{Locks: remotefs.NewLocks(state, "children")})
	w := remotefs.WriteRequest{Content: strings.NewReader(o.New), Size: -1, Mode: -1}
	switch o.Op {
	case "edit":
		_, err := f.EditText(ctx, remotefs.AtPath(o.Path, ""), remotefs.EditRequest{
			Edits: []remotefs.Edit{{Old: o.Old, New: o.New}}, Version: o.Version})
		return err
	case "create":
		w.Intent = remotefs.IntentCreate
	}
	_, err := f.WriteText(ctx, remotefs.AtPath(o.Path, ""), w)
	return err
}

// hanging is the local driver that says which step of a write is done, and hangs
// after one.
type hanging struct {
	*Driver
	step string
}

func (h *hanging) after(step string) {
	if step == h.step {
		say(answer{Message: step})
		select {}
	}
}

func (h *hanging) Stage(ctx context.Context, key string, opts remotefs.StageOptions) (remotefs.Stage, error) {
	s, err := h.Driver.Stage(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	h.after("stage")
	return &hangingStage{s, h}, nil
}

type hangingStage struct {
	remotefs.Stage
	h *hanging
}

func (s *hangingStage) Write(p []byte) (int, error) {
	n, err := s.Stage.Write(p[:len(p)/2])
	s.h.after("write")
	if err != nil {
		return n, err
	}
	m, err := s.Stage.Write(p[len(p)/2:])
	return n + m, err
}

func (s *hangingStage) Seal(ctx context.Context) error {
	err := s.Stage.Seal(ctx)
	s.h.after("seal")
	return err
}

func (s *hangingStage) Publish(opts remotefs.PublishOptions) (string, error) {
	v, err := s.Stage.Publish(opts)
	s.h.after("publish")
	return v, err
}

func (s *hangingStage) Discard() error {
	err := s.Stage.Discard()
	s.h.after("discard")
	return err
}

// child is a process that obeys.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Reader
	end io.Closer
}

func startChild(t *testing.T, state string) *child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFilesChild$")
	cmd.Env = append(os.Environ(), childVariable+"="+state, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: json.NewEncoder(in), out: bufio.NewReader(out), end: in}
	t.Cleanup(func() {
		c.end.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

func (c *child) order(o order) {
	c.t.Helper()
	if err := c.in.Encode(o); err != nil {
		c.t.Fatal(err)
	}
}

// answer waits for what the child says next.
func (c *child) answer() answer {
	c.t.Helper()
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatalf("the child said nothing: %v", err)
		}
		if text, ok := strings.CutPrefix(line, "> "); ok {
			var a answer
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				c.t.Fatal(err)
			}
			return a
		}
	}
}

// all gives each child an order at the same time and counts the answers.
func all(children []*child, o func(i int) order) (codes map[fault.Code]int, won int) {
	for i, c := range children {
		c.order(o(i))
	}
	codes, won = map[fault.Code]int{}, -1
	for i, c := range children {
		a := c.answer()
		codes[a.Code]++
		if a.Code == "" {
			won = i
		}
	}
	return codes, won
}

func startChildren(t *testing.T, n int) (children []*child, dir, state string) {
	t.Helper()
	state, dir = t.TempDir(), t.TempDir()
	for range n {
		children = append(children, startChild(t, state))
	}
	return children, dir, state
}

// Of four processes with one guard exactly one succeeds in each round, and the
// others are told that the version is stale (cases 226 and 229, S-17).
func TestProcessesWithOneGuard(t *testing.T) {
	children, dir, _ := startChildren(t, 4)
	f := remotefs.New(NewDriver(dir), remotefs.Options{})
	path := filepath.Join(dir, "f")
	if err := os.Symlink("f", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		store(t, path, "base")
		_, info, err := f.Stat(context.Background(), remotefs.AtPath("f", ""))
		if err != nil {
			t.Fatal(err)
		}
		codes, won := all(children, func(i int) order {
			name := []string{"f", "link"}[i%2]
			return order{Op: "edit", Path: filepath.Join(dir, name), Old: "base", New: fmt.Sprint("of ", i), Version: info.Version}
		})
		if codes[""] != 1 || codes[fault.FSStaleVersion] != 3 {
			t.Fatalf("round %d: %v", round, codes)
		}
		holds(t, path, fmt.Sprint("of ", won))
	}
	only(t, dir, "f", "link")
}

// Unguarded edits of several processes are all there (case 227).
func TestProcessesEditDifferentWords(t *testing.T) {
	children, dir, _ := startChildren(t, 2)
	for range 10 {
		store(t, filepath.Join(dir, "f"), "word0 word1")
		codes, _ := all(children, func(i int) order {
			return order{Op: "edit", Path: filepath.Join(dir, "f"), Old: fmt.Sprint("word", i), New: fmt.Sprint("new", i)}
		})
		if codes[""] != 2 {
			t.Fatal(codes)
		}
		holds(t, filepath.Join(dir, "f"), "new0 new1")
	}
}

// Of two processes that create one name, one succeeds and its content is there
// (case 228).
func TestProcessesCreateOneName(t *testing.T) {
	children, dir, _ := startChildren(t, 2)
	for round := range 10 {
		path := filepath.Join(dir, fmt.Sprint("f", round))
		codes, won := all(children, func(i int) order { return order{Op: "create", Path: path, New: fmt.Sprint("of ", i)} })
		if codes[""] != 1 || codes[fault.FSNotObserved] != 1 {
			t.Fatal(codes)
		}
		holds(t, path, fmt.Sprint("of ", won))
	}
}

// A process that is killed at any step of a write leaves the old file or the new
// one, whole, at most one directory that is closed to others, and no lock (cases
// 237 and 238).
func TestKilledWhileWriting(t *testing.T) {
	for _, step := range []string{"stage", "write", "seal", "publish", "discard"} {
		t.Run(step, func(t *testing.T) {
			children, dir, state := startChildren(t, 1)
			path := filepath.Join(dir, "f")
			store(t, path, "old")
			children[0].order(order{Op: "hang", Step: step, Path: path, New: "a new content"})
			if a := children[0].answer(); a.Message != step {
				t.Fatalf("the child said %+v", a)
			}
			f := remotefs.New(NewDriver(dir), remotefs.Options{Locks: remotefs.NewLocks(state, "children")})
			waitsForTheLock(t, f, state)
			if err := children[0].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = children[0].cmd.Wait()
			afterKill(t, dir, step)
			if err := replace(f, "f"); err != nil {
				t.Fatalf("the next write: %v", err)
			}
			holds(t, path, "new")
		})
	}
}

// waitsForTheLock holds that a write to f waits for the lock of the other
// process, and that waiting can be cancelled.
func waitsForTheLock(t *testing.T, f remotefs.FS, state string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := f.WriteText(ctx, remotefs.AtPath("f", ""), remotefs.WriteRequest{Content: strings.NewReader("x"), Size: 1, Mode: -1})
		ended <- err
	}()
	for deadline := time.Now().Add(time.Minute); !someoneWaits(t, state); time.Sleep(time.Millisecond) {
		if len(ended) > 0 || time.Now().After(deadline) {
			t.Fatalf("no write waits for the lock: %v", <-ended)
		}
	}
	cancel()
	wantCode(t, <-ended, fault.FSAborted)
}

// someoneWaits asks the kernel whether a lock of the state directory is waited
// for: such lines begin with an arrow after their number.
func someoneWaits(t *testing.T, state string) bool {
	t.Helper()
	var st syscall.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err := errorOf(err, syscall.Stat(filepath.Join(state, "fs.lock"), &st)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		if strings.Contains(line, "-> OFDLCK") && strings.Contains(line, fmt.Sprintf(":%d ", st.Ino)) {
			return true
		}
	}
	return false
}

func afterKill(t *testing.T, dir, step string) {
	t.Helper()
	want := "old"
	if step == "publish" || step == "discard" {
		want = "a new content"
	}
	holds(t, filepath.Join(dir, "f"), want)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 2 {
		t.Fatalf("left: %v, %v", entries, err)
	}
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.IsDir() && st.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", e.Name(), st.Mode())
		}
	}
}
