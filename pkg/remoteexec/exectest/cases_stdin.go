package exectest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// stdinCases are section F.
func stdinCases() []Case {
	return []Case{
		{ID: "C89", Name: "ignored input is at its end at once", Run: func(w *World) {
			r := w.Run(w.Spec("cat"))
			w.Ends(r, "0")
			w.Equal("out", r.Out, "")
			if !w.Facts.Remote {
				w.Ends(w.Run(w.Sh("test -c /dev/stdin")), "0")
			}
		}},
		{ID: "C90", Name: "batch input arrives", Run: func(w *World) {
			r := w.Run(w.data("hello\n", "cat"))
			w.Ends(r, "0")
			w.Equal("out", r.Out, "hello\n")
		}},
		{ID: "C91", Name: "all byte values pass", Run: func(w *World) {
			all := everyByte()
			spec := w.data(all, "cat")
			h := w.Start(spec)
			w.Ends(w.Settle(h), "0")
			chunk, _ := h.Collected(remoteexec.Stdout).ReadFrom(0)
			w.Equal("bytes", hex.EncodeToString(chunk.Bytes), hex.EncodeToString([]byte(all)))
		}},
		{ID: "C92", Name: "a program that needs the end of its input gets it", Run: func(w *World) {
			w.Equal("out", w.Run(w.data("banana\napple\n", "sort")).Out, "apple\nbanana\n")
		}},
		{ID: "C93", Name: "input that the program does not want is no failure", Run: func(w *World) {
			spec := w.Sh("exit 7")
			spec.Stdin, spec.StdinData = remoteexec.StdinData, make([]byte, 1<<20)
			w.Ends(w.Run(spec), "7")
		}},
		{ID: "C94", Name: "input that is never read does not hold the end", Run: func(w *World) {
			spec := w.Sh("sleep 1; exit 3")
			spec.Stdin, spec.StdinData = remoteexec.StdinData, make([]byte, 10<<20)
			w.Ends(w.Run(spec), "3")
		}},
		{ID: "C95", Name: "input and output do not wait for each other", Run: func(w *World) {
			spec := w.data(strings.Repeat("0123456789abcde\n", 10<<16), "cat")
			spec.Stdout = collect(65536)
			h := w.Start(spec)
			w.Ends(w.Settle(h), "0")
			w.Equal("total", h.Collected(remoteexec.Stdout).Total(), int64(10<<20))
		}},
		{ID: "C96", Name: "a conversation line by line", Run: conversation},
		{ID: "C97", Name: "a program that closes its input breaks the writer only", Run: func(w *World) {
			spec := w.Sh("exec 0<&-; sleep 1")
			spec.Stdin = remoteexec.StdinPipe
			h := w.Start(spec)
			h.Stdin().Write(make([]byte, 1<<20))
			w.Ends(w.Settle(h), "0")
		}},
		{ID: "C98", Name: "input that is never read does not hold a stop", Run: func(w *World) {
			spec := w.Sh("echo ready; sleep 60")
			spec.Stdin, spec.StdinData = remoteexec.StdinData, make([]byte, 10<<20)
			h := w.Start(spec)
			w.Await(h, remoteexec.Stdout, "ready")
			h.Terminate()
			w.Ends(w.Settle(h), "TERM")
		}},
		{ID: "C108", Name: "a write after the exit fails", Run: func(w *World) {
			spec := w.Spec("true")
			spec.Stdin = remoteexec.StdinPipe
			h := w.Start(spec)
			w.Ends(w.Settle(h), "0")
			if n, err := h.Stdin().Write([]byte("x")); n != 0 || err == nil {
				w.Errorf("the write gave %d, %v", n, err)
			}
		}},
		{ID: "P-inherit", Name: "passed-on input arrives, and its end", Run: func(w *World) {
			spec := w.Spec("cat")
			spec.Stdin, spec.InheritStdin = remoteexec.StdinInherit, bytes.NewReader([]byte("passed on"))
			r := w.Run(spec)
			w.Ends(r, "0")
			w.Equal("out", r.Out, "passed on")
		}},
		{ID: "P-open", Name: "a program ends although passed-on input stays open", Run: func(w *World) {
			r, held := io.Pipe()
			defer held.Close()
			spec := w.Sh("exit 4")
			spec.Stdin, spec.InheritStdin = remoteexec.StdinInherit, r
			w.Ends(w.Run(spec), "4")
		}},
	}
}

// data is a request with batch input.
func (w *World) data(data string, argv ...string) remoteexec.Spec {
	spec := w.Spec(argv...)
	spec.Stdin, spec.StdinData = remoteexec.StdinData, []byte(data)
	return spec
}

// everyByte holds each byte value once.
func everyByte() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}

func conversation(w *World) {
	spec := w.Spec("cat")
	spec.Stdin = remoteexec.StdinPipe
	spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputPipe}
	spec.Grace = 5 * time.Second
	h := w.Start(spec)
	lines := bufio.NewReader(h.Pipe(remoteexec.Stdout))
	for _, line := range []string{"one\n", "two\n", "three\n"} {
		if _, err := io.WriteString(h.Stdin(), line); err != nil {
			w.Fatalf("write: %v", err)
		}
		got, err := lines.ReadString('\n')
		w.Equal("echo", got, line)
		w.Equal("read", err, nil)
	}
	w.Equal("close", h.Stdin().Close(), nil)
	_, err := lines.ReadByte()
	w.Equal("end", err, io.EOF)
	h.Pipe(remoteexec.Stdout).Close()
	w.Ends(w.Settle(h), "0")
}
