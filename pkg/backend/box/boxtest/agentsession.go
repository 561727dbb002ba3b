package boxtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/creack/pty"
)

// sessionFrame is any frame of a session, in both directions.
type sessionFrame struct {
	Type    string   `json:"type"`
	Argv    []string `json:"argv,omitempty"`
	Cmd     string   `json:"cmd,omitempty"`
	TTY     bool     `json:"tty,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	Env     []string `json:"env,omitempty"`
	Rows    int      `json:"rows,omitempty"`
	Cols    int      `json:"cols,omitempty"`
	Data    []byte   `json:"data,omitempty"`
	Signal  string   `json:"signal,omitempty"`
	GraceMs int64    `json:"graceMs,omitempty"`
	PID     int      `json:"pid,omitempty"`
	ExecID  string   `json:"execId,omitempty"`
	Code    *int     `json:"code,omitempty"`
	Message string   `json:"message,omitempty"`
}

// defaultGrace is between TERM and KILL where a client gives none.
const defaultGrace = 5 * time.Second

// quiet is how long the outputs must be silent after the program's end while a
// descendant still holds them.
const quiet = 250 * time.Millisecond

// execNumber makes the ids of sessions.
var execNumber atomic.Int64

// live is one session in the box.
type live struct {
	agent *agent
	conn  *websocket.Conn
	cmd   *exec.Cmd
	tty   *os.File
	in    *inputQueue
	stop  sync.Once
	pumps sync.WaitGroup
	// active counts the pumps that have not seen the end, waiting those of them
	// that wait for output; lastRead is when one got some.
	active   atomic.Int32
	waiting  atomic.Int32
	lastRead atomic.Int64
}

func (a *agent) session(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	first, err := readFrame(conn)
	if err != nil || first.Type != "start" {
		_ = conn.Close(websocket.StatusPolicyViolation, "start expected")
		return
	}
	s := &live{agent: a, conn: conn}
	outputs, err := s.start(first)
	if err != nil {
		s.send(sessionFrame{Type: "error", Message: err.Error()})
		_ = conn.Close(websocket.StatusNormalClosure, "")
		return
	}
	pid := s.cmd.Process.Pid
	defer killTree(pid)
	s.send(sessionFrame{Type: "started", PID: pid, ExecID: "exec-" + strconv.FormatInt(execNumber.Add(1), 10)})
	s.run(outputs)
}

// start starts the program and gives its outputs with the names of their
// frames.
func (s *live) start(f sessionFrame) (map[string]*os.File, error) {
	argv := f.Argv
	if len(argv) == 0 && f.Cmd != "" {
		argv = []string{"bash", "-lc", f.Cmd}
	}
	cwd := f.Cwd
	if cwd == "" {
		cwd = Workspace
	}
	var err error
	if s.cmd, err = s.agent.command(argv, cwd, f.Env); err != nil {
		return nil, err
	}
	if f.TTY {
		if s.tty, err = s.agent.startTerminal(s.cmd, f.Rows, f.Cols); err != nil {
			return nil, err
		}
		s.in = newInputQueue(s.tty)
		return map[string]*os.File{"stdout": s.tty}, nil
	}
	return s.startPiped()
}

func (s *live) startPiped() (map[string]*os.File, error) {
	var files [6]*os.File // pairs: stdin, stdout, stderr
	for i := 0; i < 6; i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		files[i], files[i+1] = r, w
	}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = files[0], files[3], files[5]
	err := s.agent.start(s.cmd)
	for _, f := range []*os.File{files[0], files[3], files[5]} {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{files[1], files[2], files[4]} {
			f.Close()
		}
		return nil, err
	}
	s.in = newInputQueue(files[1])
	return map[string]*os.File{"stdout": files[2], "stderr": files[4]}, nil
}

// run moves frames until the client has gone.
func (s *live) run(outputs map[string]*os.File) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.read()
	}()
	drained := make(chan struct{})
	for name, f := range outputs {
		s.pumps.Add(1)
		s.active.Add(1)
		go s.pump(name, f)
	}
	go func() {
		s.pumps.Wait()
		close(drained)
	}()
	exited := make(chan int, 1)
	go func() {
		_ = s.cmd.Wait()
		s.agent.disown(s.cmd.Process.Pid)
		exited <- exitCode(s.cmd.ProcessState)
	}()
	select {
	case code := <-exited:
		s.drain(drained, gone)
		s.send(sessionFrame{Type: "exit", Code: &code})
		<-gone
	case <-gone:
		killTree(s.cmd.Process.Pid)
		<-exited
	}
	s.in.close()
	for _, f := range outputs {
		_ = f.Close()
	}
}

// drain waits for the outputs' end, or until nothing has come for a while
// although the client takes all.
func (s *live) drain(drained, gone <-chan struct{}) {
	s.lastRead.Store(time.Now().UnixNano())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-drained:
			return
		case <-gone:
			return
		case <-tick.C:
			idle := time.Since(time.Unix(0, s.lastRead.Load()))
			if s.waiting.Load() == s.active.Load() && idle > quiet {
				return
			}
		}
	}
}

// pump sends one output.
func (s *live) pump(name string, f *os.File) {
	defer s.pumps.Done()
	defer s.active.Add(-1)
	buf := make([]byte, 32<<10)
	for {
		s.waiting.Add(1)
		n, err := f.Read(buf)
		s.waiting.Add(-1)
		s.lastRead.Store(time.Now().UnixNano())
		if n > 0 {
			s.send(sessionFrame{Type: name, Data: buf[:n]})
		}
		if err != nil {
			return
		}
	}
}

// read serves the client's frames until the connection ends.
func (s *live) read() {
	pid := s.cmd.Process.Pid
	for {
		f, err := readFrame(s.conn)
		if err != nil {
			return
		}
		switch f.Type {
		case "stdin":
			s.in.push(f.Data)
		case "stdin_close":
			if s.tty == nil {
				s.in.end()
			}
		case "resize":
			if s.tty != nil && f.Rows > 0 && f.Cols > 0 {
				_ = pty.Setsize(s.tty, &pty.Winsize{Rows: uint16(f.Rows), Cols: uint16(f.Cols)})
			}
		case "signal":
			if sig, ok := sessionSignal(f.Signal); ok {
				signalTree(pid, sig)
			}
		case "terminate":
			s.stop.Do(func() { go terminate(pid, time.Duration(f.GraceMs)*time.Millisecond) })
		}
	}
}

// terminate ends a tree: TERM, grace, KILL.
func terminate(pid int, grace time.Duration) {
	if grace <= 0 {
		grace = defaultGrace
	}
	signalTree(pid, syscall.SIGTERM)
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if len(tree(pid)) == 0 {
			return
		}
	}
	killTree(pid)
}

func sessionSignal(name string) (syscall.Signal, bool) {
	switch name {
	case "TERM":
		return syscall.SIGTERM, true
	case "KILL":
		return syscall.SIGKILL, true
	case "INT":
		return syscall.SIGINT, true
	case "HUP":
		return syscall.SIGHUP, true
	case "TSTP":
		return syscall.SIGTSTP, true
	case "QUIT":
		return syscall.SIGQUIT, true
	case "USR1":
		return syscall.SIGUSR1, true
	case "USR2":
		return syscall.SIGUSR2, true
	}
	return 0, false
}

func (s *live) send(f sessionFrame) {
	text, err := json.Marshal(f)
	if err == nil {
		_ = s.conn.Write(context.Background(), websocket.MessageText, text)
	}
}

func readFrame(conn *websocket.Conn) (f sessionFrame, err error) {
	for {
		kind, text, err := conn.Read(context.Background())
		if err != nil {
			return f, err
		}
		if kind == websocket.MessageText && json.Unmarshal(text, &f) == nil {
			return f, nil
		}
		f = sessionFrame{}
	}
}

// inputQueue hands input to a program without holding up the frames behind it.
type inputQueue struct {
	mu     sync.Mutex
	more   *sync.Cond
	queued [][]byte
	ended  bool
	file   io.WriteCloser
}

func newInputQueue(f io.WriteCloser) *inputQueue {
	q := &inputQueue{file: f}
	q.more = sync.NewCond(&q.mu)
	go q.write()
	return q
}

func (q *inputQueue) push(p []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended && len(p) > 0 {
		q.queued = append(q.queued, p)
		q.more.Signal()
	}
}

// end closes the input after what is queued.
func (q *inputQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.more.Signal()
}

// close drops what is queued.
func (q *inputQueue) close() {
	q.mu.Lock()
	q.queued, q.ended = nil, true
	q.more.Signal()
	q.mu.Unlock()
	_ = q.file.Close()
}

func (q *inputQueue) write() {
	for {
		q.mu.Lock()
		for len(q.queued) == 0 && !q.ended {
			q.more.Wait()
		}
		if len(q.queued) == 0 {
			q.mu.Unlock()
			_ = q.file.Close()
			return
		}
		p := q.queued[0]
		q.queued = q.queued[1:]
		q.mu.Unlock()
		if _, err := q.file.Write(p); err != nil {
			q.close()
			return
		}
	}
}
