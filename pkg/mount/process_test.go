package mount

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// task is what the test binary does when it is started as another process.
type task struct {
	Dir, State, Session string
	StatsFile           string
	Wait                time.Duration
	// Reads are done in order; the answers go to stdout, one JSON line each.
	Reads []taskRead
	// Kill ends the process by SIGKILL after the first answer is delivered and
	// before it is recorded.
	Kill bool
	// Hold locks the session, says so, and waits for the end of stdin.
	Hold bool
}

type taskRead struct {
	Path          string
	Offset, Limit int
}

const taskVariable = "AFIELD_TEST_MOUNT_TASK"

func TestMain(m *testing.M) {
	if text := os.Getenv(taskVariable); text != "" {
		if err := runTask(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runTask(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	m := taskMount(t)
	if t.Hold {
		s, err := m.Store.Open(context.Background(), t.Session, time.Minute)
		if err != nil {
			return err
		}
		defer s.Close()
		fmt.Println("held")
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, r := range t.Reads {
		opts := remotefs.WindowOptions{Offset: max(1, r.Offset), Limit: 2000}
		if r.Limit > 0 {
			opts.Limit = r.Limit
		}
		c := Call{Session: t.Session, Wait: t.Wait}
		err := m.Read(context.Background(), remotefs.AtPath(r.Path, ""), opts, c, func(a *Answer) error {
			if err := out.Encode(a); err != nil {
				return err
			}
			if t.Kill {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func taskMount(t task) *Mount {
	c := DefaultConfig()
	c.StatsFile = t.StatsFile
	return &Mount{
		Files: remotefs.New(local.NewDriver(t.Dir), remotefs.Options{}), World: "here", Cwd: t.Dir, Config: c, Now: time.Now,
		Store: &ledger.Store{Dir: t.State, Now: time.Now, MaxDrafts: c.MaxPinnedFiles, SpareDrafts: c.Capacity},
		Warn:  func(line string) { fmt.Fprintln(os.Stderr, "warning:", line) },
	}
}

// process is another process at work.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func (t task) command() *process {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", taskVariable+"="+string(text))
	p.Stdout, p.Stderr = &p.out, &p.err
	return p
}

// answers waits for the process and gives what it printed.
func (p *process) answers(t *testing.T) []*Answer {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.err.String())
	}
	var all []*Answer
	for dec := json.NewDecoder(&p.out); ; {
		a := &Answer{}
		if err := dec.Decode(a); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
}

// run does a task to its end.
func (t task) run(tt *testing.T) []*Answer {
	tt.Helper()
	p := t.command()
	if err := p.Start(); err != nil {
		tt.Fatal(err)
	}
	return p.answers(tt)
}

func newTask(t *testing.T, files map[string]string) task {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return task{Dir: dir, State: filepath.Join(t.TempDir(), "v1"), Session: "s", Wait: time.Minute}
}

func (t task) with(reads ...taskRead) task {
	t.Reads = reads
	return t
}

func gen(from, to int) string { return generator{From: from, To: to}.bytes() }

func (t task) journal() string { return filepath.Join(t.State, t.Session, "journal.jsonl") }

// C1: 8 processes read disjoint windows in one session: all of it is mounted,
// and the totals are the sum of the answers.
func TestManyProcessesMountDisjointWindows(t *testing.T) {
	const workers, windows = 8, 50
	base := newTask(t, map[string]string{"a.txt": gen(1, workers*windows*2)})
	var all []*process
	for w := range workers {
		work := base
		for i := range windows {
			work.Reads = append(work.Reads, taskRead{"a.txt", 1 + 2*(i*workers+w), 2})
		}
		work.Reads = append(work.Reads, work.Reads[0])
		p := work.command()
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	var sum ledger.Totals
	news := 0
	for _, p := range all {
		for _, a := range p.answers(t) {
			sum.Add(ledger.Totals{Saved: int64(a.Tokens.Saved), Overhead: int64(a.Tokens.Overhead)})
			if a.Kind == New {
				news++
			}
		}
	}
	s, _, err := taskMount(base).Store.Peek(context.Background(), "s", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if news != 1 || s.Totals != sum || len(s.Files) != 1 || sum.Saved == 0 {
		t.Errorf("%d new, totals %+v, sum of answers %+v, %d files", news, s.Totals, sum, len(s.Files))
	}
	for _, f := range s.Files {
		if m := ledger.Mounted(f.Segments); len(m) != 1 || m[0] != (ledger.Range{Start: 1, End: workers * windows * 2}) {
			t.Errorf("mounted %v", m)
		}
	}
}

// C2: two processes read the same window at once, 200 times: one is new, the
// other a dedupe.
func TestTwoProcessesReadTheSameWindow(t *testing.T) {
	files, work := map[string]string{}, []taskRead{}
	for i := range 200 {
		name := fmt.Sprintf("f%d.txt", i)
		files[name] = gen(1, 6)
		work = append(work, taskRead{Path: name})
	}
	base := newTask(t, files).with(work...)
	one, two := base.command(), base.command()
	for _, p := range []*process{one, two} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	a, b := one.answers(t), two.answers(t)
	for i := range work {
		if kinds := string(a[i].Kind) + " " + string(b[i].Kind); kinds != "new dedupe" && kinds != "dedupe new" {
			t.Errorf("%s: %s", work[i].Path, kinds)
		}
	}
}

// C3: a reader that closes the pipe before the answer gets it again.
func TestClosedPipeRecordsNothing(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20)}).with(taskRead{Path: "a.txt"})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	p := base.command()
	p.Stdout = w
	if err := p.Run(); err == nil {
		t.Error("the process did not notice that nobody reads")
	}
	w.Close()
	if a := base.run(t); a[0].Kind != New {
		t.Errorf("the next read is %s", a[0].Kind)
	}
}

// C4: a process that is killed between answer and record: the lines are sent
// once more.
func TestKilledBeforeRecordSendsAgain(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20)}).with(taskRead{Path: "a.txt"})
	kill := base
	kill.Kill = true
	p := kill.command()
	err := p.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 || p.out.Len() == 0 {
		t.Fatalf("%v, delivered %d bytes", err, p.out.Len())
	}
	if a := base.run(t); a[0].Kind != New || *a[0].Seq != 1 {
		t.Errorf("the next read is %s with seq %d", a[0].Kind, *a[0].Seq)
	}
}

// C5: half a line at the end of the journal is ignored, then cut.
func TestTornJournalLineIsCut(t *testing.T) {
	for name, torn := range map[string]string{"half": `{"v":1,"seq":9,"op":"re`, "whole but no JSON": "{\"v\":1,\"seq\":9,oops\n"} {
		t.Run(name, func(t *testing.T) {
			base := newTask(t, map[string]string{"a.txt": gen(1, 20)}).with(taskRead{Path: "a.txt"})
			base.run(t)
			appendTo(t, base.journal(), torn)
			if a := base.run(t); a[0].Kind != Dedupe || *a[0].Seq != 2 {
				t.Errorf("%s with seq %d", a[0].Kind, *a[0].Seq)
			}
			data, err := os.ReadFile(base.journal())
			if err != nil || bytes.Contains(data, []byte(`"seq":9`)) {
				t.Errorf("the torn line is still there: %v", err)
			}
		})
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// C6: a journal of another version: the session starts empty with a warning, and
// the file is kept aside.
func TestForeignJournalIsKeptAside(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20)}).with(taskRead{Path: "a.txt"})
	base.run(t)
	appendTo(t, base.journal(), `{"v":2,"seq":2,"op":"later"}`+"\n")
	p := base.command()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if a := p.answers(t); a[0].Kind != New || *a[0].Seq != 1 || !strings.Contains(p.err.String(), "starts empty") {
		t.Errorf("%s with seq %d, warning %q", a[0].Kind, *a[0].Seq, p.err.String())
	}
	aside, err := filepath.Glob(base.journal() + ".format2-*")
	if err != nil || len(aside) != 1 {
		t.Fatalf("aside: %v, %v", aside, err)
	}
	if data, _ := os.ReadFile(aside[0]); !bytes.Contains(data, []byte(`"op":"later"`)) {
		t.Error("what is kept aside is not the journal")
	}
}

// A line in the middle that does not parse: what stood before it counts as not
// sent, and nothing else fails.
func TestDamagedJournalForgetsWhatStoodBefore(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20), "b.txt": gen(1, 20)})
	base.with(taskRead{Path: "a.txt"}).run(t)
	appendTo(t, base.journal(), "\x00\x00\x00garbage\n")
	data, err := os.ReadFile(base.journal())
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`{"v":1,"seq":2,"at":"2020-01-01T00:00:00Z","op":"context","used":70}` + "\n")
	if err := os.WriteFile(base.journal(), append(data, line...), 0o600); err != nil {
		t.Fatal(err)
	}
	p := base.with(taskRead{Path: "a.txt"}, taskRead{Path: "a.txt"}).command()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	a := p.answers(t)
	if a[0].Kind != New || *a[0].Seq != 3 || a[1].Kind != Dedupe || strings.Count(p.err.String(), "damaged") != 1 {
		t.Errorf("%s seq %d, then %s; %s", a[0].Kind, *a[0].Seq, a[1].Kind, p.err.String())
	}
}

// C7: a state folder that cannot be written: every read is native, with a
// warning.
func TestReadOnlyStateReadsNatively(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20)})
	base.with(taskRead{Path: "a.txt"}).run(t)
	session := filepath.Join(base.State, base.Session)
	p := base.with(taskRead{Path: "a.txt"}, taskRead{Path: "a.txt"}).command()
	if os.Getuid() == 0 { // root may write anywhere: be somebody else
		for dir := base.State; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			must(t, os.Chmod(dir, 0o755))
		}
		must(t, os.Chmod(filepath.Dir(base.Dir), 0o755))
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		p.Path = copyTo(t, os.Args[0])
	}
	for _, name := range []string{"lock", "journal.jsonl", "meta.json"} {
		must(t, os.Chmod(filepath.Join(session, name), 0o444))
	}
	must(t, os.Chmod(session, 0o555))
	t.Cleanup(func() { os.Chmod(session, 0o700) })
	before, err := os.ReadFile(base.journal())
	must(t, err)
	must(t, p.Start())
	for i, a := range p.answers(t) {
		if a.Kind != Passthrough || a.Reason != "ledger-unavailable" || len(a.Lines) != 20 {
			t.Errorf("read %d is %s (%s) with %d lines", i, a.Kind, a.Reason, len(a.Lines))
		}
	}
	if !strings.Contains(p.err.String(), "warning:") {
		t.Error("no warning")
	}
	if after, _ := os.ReadFile(base.journal()); !bytes.Equal(before, after) {
		t.Error("the journal has changed")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copyTo copies the test binary to where everybody can run it.
func copyTo(t *testing.T, from string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "afield-nobody-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	data, err := os.ReadFile(from)
	must(t, err)
	path := filepath.Join(dir, "mount.test")
	must(t, os.WriteFile(path, data, 0o755))
	return path
}

// C8: the lock is held by another process: native after the timeout, and again
// managed when it is free.
func TestBusySessionReadsNatively(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20)})
	hold := base
	hold.Hold = true
	p := hold.command()
	p.Stdout = nil
	out, err := p.StdoutPipe()
	must(t, err)
	in, err := p.StdinPipe()
	must(t, err)
	must(t, p.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	short := base.with(taskRead{Path: "a.txt"})
	short.Wait = time.Millisecond
	q := short.command()
	must(t, q.Start())
	if a := q.answers(t); a[0].Kind != Passthrough || a[0].Reason != "ledger-busy" || !strings.Contains(q.err.String(), "another process holds it") {
		t.Errorf("%s (%s): %s", a[0].Kind, a[0].Reason, q.err.String())
	}
	in.Close()
	must(t, p.Wait())
	if a := short.run(t); a[0].Kind != New {
		t.Errorf("%s", a[0].Kind)
	}
}

// A process that dies takes its lock with it.
func TestKilledProcessReleasesTheLock(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20)})
	hold := base
	hold.Hold = true
	p := hold.command()
	p.Stdout = nil
	out, err := p.StdoutPipe()
	must(t, err)
	_, err = p.StdinPipe()
	must(t, err)
	must(t, p.Start())
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	must(t, p.Process.Kill())
	p.Wait()
	if a := base.with(taskRead{Path: "a.txt"}).run(t); a[0].Kind != New {
		t.Errorf("%s", a[0].Kind)
	}
}

// C9: the statistics file from 8 processes: exact sums, and as many sessions as
// there were ids that mounted something.
func TestStatisticsFromManyProcesses(t *testing.T) {
	base := newTask(t, map[string]string{"a.txt": gen(1, 20), "empty": ""})
	base.StatsFile = filepath.Join(t.TempDir(), "stats.json")
	var all []*process
	for i := range 8 {
		work := base
		work.Session = fmt.Sprint("id", i%5)
		for range 10 {
			work.Reads = append(work.Reads, taskRead{Path: "a.txt"})
		}
		p := work.command()
		must(t, p.Start())
		all = append(all, p)
	}
	idle := base.with(taskRead{Path: "empty"})
	idle.Session = "mounts-nothing"
	idle.run(t)
	saved, spent := int64(0), int64(0)
	for _, p := range all {
		for _, a := range p.answers(t) {
			saved, spent = saved+int64(a.Tokens.Saved), spent+int64(a.Tokens.Overhead)
		}
	}
	data, err := os.ReadFile(base.StatsFile)
	must(t, err)
	want := fmt.Sprintf("{\n  \"sessions\": 5,\n  \"savedTokens\": %d,\n  \"spentTokens\": %d\n}", saved, spent)
	if string(data) != want || saved == 0 {
		t.Errorf("%s, want %s", data, want)
	}
}

// Members that are no numbers count as 0, and a broken file as zeros.
func TestStatisticsOfABrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats.json")
	for text, want := range map[string][3]int64{
		`{"sessions": 3, "savedTokens": "x", "spentTokens": null}`: {4, 10, 5},
		`{"sessions": 1.0, "savedTokens": 7, "other": {}}`:         {2, 17, 5},
		`[1]`: {1, 10, 5},
		``:    {1, 10, 5},
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		must(t, AddStats(context.Background(), path, StatsDelta{1, ledger.Totals{Saved: 10, Overhead: 5}}))
		if s := ReadStats(path); *s.Sessions != want[0] || *s.SavedTokens != want[1] || *s.SpentTokens != want[2] {
			t.Errorf("%s: %d %d %d, want %v", text, *s.Sessions, *s.SavedTokens, *s.SpentTokens, want)
		}
	}
	if s := ReadStats(""); s.Sessions != nil || s.NetTokens != nil {
		t.Error("numbers without a file")
	}
}
