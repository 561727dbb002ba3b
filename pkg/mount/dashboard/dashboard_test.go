package dashboard

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/backend/local"
	"github.com/afield-dev/afield/pkg/mount"
	"github.com/afield-dev/afield/pkg/mount/ledger"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// The test binary is also the second process that reads: with these variables
// it reads files of a directory and ends.
const (
	readerDir   = "AFIELD_TEST_READER_DIR"
	readerState = "AFIELD_TEST_READER_STATE"
	readerFiles = "AFIELD_TEST_READER_FILES"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(readerDir); dir != "" {
		for _, line := range strings.Split(os.Getenv(readerFiles), "\n") {
			if err := readOne(dir, os.Getenv(readerState), line); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		return
	}
	status := m.Run()
	endChromium()
	os.Exit(status)
}

// readOne reads "FILE OFFSET LIMIT USED".
func readOne(dir, state, line string) error {
	var name string
	var offset, limit int
	var used int64
	if _, err := fmt.Sscan(line, &name, &offset, &limit, &used); err != nil {
		return err
	}
	m := &mount.Mount{
		Files: remotefs.New(local.NewDriver(dir), remotefs.Options{}), World: "here", Cwd: dir,
		Config: mount.DefaultConfig(), Store: newStore(state), Now: time.Now,
	}
	call := mount.Call{Session: "run", Used: &used, Wait: watchdog}
	return m.Read(context.Background(), remotefs.AtPath(name, ""), remotefs.WindowOptions{Offset: offset, Limit: limit}, call,
		func(*mount.Answer) error { return nil })
}

func newStore(dir string) *ledger.Store {
	return &ledger.Store{Dir: dir, Now: time.Now, MaxDrafts: 256, SpareDrafts: 32}
}

// scene is a world with a session and the page that shows it.
type scene struct {
	t          *testing.T
	dir, state string
	origin     string
	server     *Server
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, dir: dir, state: t.TempDir()}
	s.server = &Server{Store: newStore(s.state), Session: "run", Config: mount.DefaultConfig(), Token: NewToken(), Wait: watchdog}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.origin = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func (s *scene) url() string { return s.origin + s.server.Path() }

// file makes a file of numbered lines.
func (s *scene) file(name string, lines int, changed ...int) {
	s.t.Helper()
	var b strings.Builder
	for i := 1; i <= lines; i++ {
		word := "line"
		for _, c := range changed {
			if c == i {
				word = "changed"
			}
		}
		fmt.Fprintf(&b, "%s %d of %s with some words so that it costs something\n", word, i, name)
	}
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// read lets a second process read.
func (s *scene) read(lines ...string) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", readerDir+"="+s.dir, readerState+"="+s.state, readerFiles+"="+strings.Join(lines, "\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// fill makes a session with a file of every level.
func (s *scene) fill() {
	s.file("docs/guide/introduction.md", 400)
	s.file("pkg/mount/read.go", 300)
	s.file("pkg/mount/decide.go", 120)
	s.file("main.go", 40)
	s.file("a/very/long/path/that/does/not/fit/on/a/phone/because/it/goes/on/and/on/the_name_itself_is_long_too.txt", 80)
	s.read("docs/guide/introduction.md 1 100 1000", "docs/guide/introduction.md 200 60 40000", "pkg/mount/read.go 1 300 60000",
		"pkg/mount/decide.go 10 20 100000", "main.go 1 40 110000", "main.go 1 40 111000", "pkg/mount/read.go 1 300 111000")
	s.file("main.go", 40, 12)
	s.read("main.go 1 40 119000", "pkg/mount/decide.go 90 20 121000",
		"a/very/long/path/that/does/not/fit/on/a/phone/because/it/goes/on/and/on/the_name_itself_is_long_too.txt 1 30 124000")
}

func (s *scene) get(path string, header ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.origin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// Who does not know the token, or comes from another page, sees nothing.
func TestOnlyThePageItselfIsAnswered(t *testing.T) {
	s := newScene(t)
	page := s.server.Path()
	for _, c := range []struct {
		path   string
		status int
		header []string
	}{
		{page, 200, nil},
		{page + "page.js", 200, nil},
		{page + "page.css", 200, nil},
		{page + "events", 200, nil},
		{page + "nosuch", 404, nil},
		{"/", 404, nil},
		{"/page.js", 404, nil},
		{"/" + s.server.Token, 404, nil},
		{"/" + strings.Repeat("A", 22) + "/events", 404, nil},
		{page + "events", 403, []string{"Origin", "http://evil.example"}},
		{page + "events", 200, []string{"Origin", s.origin}},
		{page + "events", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}},
		{page + "page.js", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}},
		{page, 200, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}},
		{page, 403, []string{"Host", "rebound.example"}},
		{page, 200, []string{"Host", "localhost:1"}},
	} {
		resp := s.get(c.path, c.header...)
		if resp.StatusCode != c.status {
			t.Errorf("%s %v: %d, want %d", c.path, c.header, resp.StatusCode, c.status)
		}
		csp := resp.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: policy %q", c.path, csp)
		}
	}
}

// The page cannot be used to change anything.
func TestPageIsReadOnly(t *testing.T) {
	s := newScene(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		req, _ := http.NewRequest(method, s.url()+"events", strings.NewReader("x"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

// Each token is another one.
func TestTokensAreRandom(t *testing.T) {
	if a, b := NewToken(), NewToken(); a == b || len(a) < 22 {
		t.Errorf("%q, %q", a, b)
	}
}

// The stream begins with the whole state and goes on with what changes.
func TestStreamSendsChanges(t *testing.T) {
	s := newScene(t)
	s.file("a.txt", 20)
	s.file("b.txt", 20)
	s.read("a.txt 1 10 50")
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") {
				return lines.Text()
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	if first := next(); !strings.Contains(first, `"path":"a.txt"`) || !strings.Contains(first, `"reset":true`) {
		t.Errorf("first: %s", first)
	}
	s.read("b.txt 1 5 60")
	if second := next(); !strings.Contains(second, `"path":"b.txt"`) || strings.Contains(second, `"path":"a.txt"`) || strings.Contains(second, `"reset":true`) {
		t.Errorf("second: %s", second)
	}
}
