package boxtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"
)

type execRequest struct {
	Command  []string `json:"command"`
	Folder   string   `json:"folder"`
	Code     string   `json:"code"`
	Language string   `json:"language"`
}

// folder gives the directory of a command: relative ones lie below the
// workspace.
func folder(f string) string {
	if path.IsAbs(f) {
		return path.Clean(f)
	}
	return path.Join(Workspace, f)
}

func decodeExec(w http.ResponseWriter, r *http.Request) (req execRequest, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "invalid request body")
		return req, false
	}
	return req, true
}

// interpreter turns code into a command.
func (q *execRequest) interpreter() bool {
	switch q.Language {
	case "js", "javascript":
		q.Command = []string{"node", "-e", q.Code}
	case "python":
		q.Command = []string{"python3", "-c", q.Code}
	default:
		return false
	}
	return true
}

func (a *agent) exec(w http.ResponseWriter, r *http.Request) {
	if req, ok := decodeExec(w, r); ok {
		a.buffered(w, req)
	}
}

func (a *agent) code(w http.ResponseWriter, r *http.Request) {
	req, ok := decodeExec(w, r)
	switch {
	case !ok:
	case !req.interpreter():
		refuse(w, http.StatusBadRequest, "unsupported language")
	default:
		a.buffered(w, req)
	}
}

// buffered runs a command to the end of its output. It goes on when the client
// leaves, and also when the limit passes.
func (a *agent) buffered(w http.ResponseWriter, req execRequest) {
	cmd, err := a.command(req.Command, folder(req.Folder), nil)
	if err != nil {
		refuse(w, http.StatusBadRequest, "%s", err)
		return
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := a.start(cmd); err != nil {
		refuse(w, http.StatusInternalServerError, "Failed to execute command")
		return
	}
	done := make(chan int, 1)
	go func() {
		_ = cmd.Wait()
		a.disown(cmd.Process.Pid)
		done <- exitCode(cmd.ProcessState)
	}()
	var cut <-chan time.Time
	if a.cfg.Cutoff > 0 {
		cut = time.After(a.cfg.Cutoff)
	}
	select {
	case code := <-done:
		answer(w, http.StatusOK, map[string]any{"exit_code": code, "output": stdout.String(),
			"error": stderr.String(), "cpu_ns": cmd.ProcessState.UserTime().Nanoseconds()})
	case <-cut:
		refuse(w, http.StatusInternalServerError, "Failed to execute command")
	}
}

func (a *agent) execStream(w http.ResponseWriter, r *http.Request) {
	if req, ok := decodeExec(w, r); ok {
		a.streamed(w, req)
	}
}

func (a *agent) codeStream(w http.ResponseWriter, r *http.Request) {
	req, ok := decodeExec(w, r)
	if ok && req.interpreter() {
		a.streamed(w, req)
	}
}

// streamed sends both outputs merged, and a marker with the exit code.
func (a *agent) streamed(w http.ResponseWriter, req execRequest) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := &flusher{w: w, control: http.NewResponseController(w)}
	cmd, err := a.command(req.Command, folder(req.Folder), nil)
	if err == nil {
		err = a.runMerged(cmd, out)
	}
	if err != nil {
		fmt.Fprintf(w, "event: error\ndata: {\"error\":%q}\n\n", err.Error())
		return
	}
	if out.last != 0 && out.last != '\n' {
		_, _ = io.WriteString(out, "\n")
	}
	fmt.Fprintf(w, "event: exit\ndata: {\"exit_code\":%d,\"cpu_ns\":%d}\n\n",
		exitCode(cmd.ProcessState), cmd.ProcessState.UserTime().Nanoseconds())
}

func (a *agent) runMerged(cmd *exec.Cmd, out io.Writer) error {
	r, wr, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = wr, wr
	err = a.start(cmd)
	wr.Close()
	if err != nil {
		return err
	}
	_, _ = io.Copy(out, r)
	_ = cmd.Wait()
	a.disown(cmd.Process.Pid)
	return nil
}

// flusher sends each piece at once and remembers the last byte.
type flusher struct {
	w       io.Writer
	control *http.ResponseController
	last    byte
}

func (f *flusher) Write(p []byte) (int, error) {
	if len(p) > 0 {
		f.last = p[len(p)-1]
	}
	n, err := f.w.Write(p)
	_ = f.control.Flush()
	return n, err
}

// shellQuoted is the text that a run's record shows for a command.
func shellQuoted(argv []string) string { return strings.Join(argv, " ") }
