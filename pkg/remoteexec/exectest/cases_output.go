package exectest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// outputCases are section G.
func outputCases() []Case {
	return []Case{
		{ID: "C109", Name: "the streams are kept apart", Run: func(w *World) {
			r := w.Run(w.Sh("echo out; echo err >&2"))
			w.Equal("stdout", r.Out, "out\n")
			w.Equal("stderr", r.Log, "err\n")
		}},
		{ID: "C110", Name: "no newline is added", Run: func(w *World) {
			w.Equal("stdout", w.Run(w.Spec("printf", "abc")).Out, "abc")
		}},
		{ID: "C111", Name: "no output is an empty stream", Run: func(w *World) {
			h := w.Start(w.Spec("true"))
			w.Ends(w.Settle(h), "0")
			chunk, err := h.Collected(remoteexec.Stdout).ReadText(0)
			w.Equal("chunk", chunk, remoteexec.TextChunk{})
			w.Equal("error", err, nil)
		}},
		{ID: "C112", Name: "bytes are exact and text shows what is no text", Run: func(w *World) {
			h := w.Start(w.data(everyByte(), "cat"))
			w.Ends(w.Settle(h), "0")
			raw, _ := h.Collected(remoteexec.Stdout).ReadFrom(0)
			w.Equal("bytes", hex.EncodeToString(raw.Bytes), hex.EncodeToString([]byte(everyByte())))
			text, _ := h.Collected(remoteexec.Stdout).ReadText(0)
			w.Equal("next offset", text.NextOffset, int64(256))
			w.Equal("NUL kept", strings.HasPrefix(text.Text, "\x00\x01"), true)
			w.Equal("U+FFFD", strings.Contains(text.Text, "\uFFFD"), true)
		}},
		{ID: "C113", Name: "a long stream needs no more memory than its cap", Alone: true, Run: longStream},
		{ID: "C114", Name: "the tail is kept", Run: func(w *World) {
			spec := w.Sh(lines200)
			spec.Stdout = collect(500)
			r := w.Run(spec)
			w.Equal("bytes kept", len(r.Out), 500)
			w.Equal("last line", strings.Contains(r.Out, "line-0200"), true)
			w.Equal("first line", strings.Contains(r.Out, "line-0001"), false)
		}},
		{ID: "C115", Name: "exactly the cap is not truncated, one byte more is", Run: func(w *World) {
			w.truncated(500, false)
			w.truncated(501, true)
		}},
		{ID: "C116", Name: "the caps of the streams are independent", Run: func(w *World) {
			spec := w.Sh(`head -c 500 /dev/zero | tr '\0' a; head -c 400 /dev/zero | tr '\0' b >&2; head -c 100 /dev/zero | tr '\0' c >&2`)
			spec.Stdout, spec.Stderr = collect(500), collect(100)
			r := w.Run(spec)
			w.Equal("stdout", r.Out, strings.Repeat("a", 500))
			w.Equal("stderr", r.Log, strings.Repeat("c", 100))
		}},
		{ID: "C122", Name: "readers do not disturb each other", Run: twoCursors},
		{ID: "C123", Name: "a later read gives the rest, and repeated reads are equal", Run: deltas},
		{ID: "C124", Name: "a character that arrives in parts is not spoilt", Run: splitCharacter},
		{ID: "C125", Name: "an unfinished character at the end is shown", Run: func(w *World) {
			h := w.Start(w.Sh(`printf 'A\342\202'`))
			w.Ends(w.Settle(h), "0")
			chunk, _ := h.Collected(remoteexec.Stdout).ReadText(0)
			w.Equal("chunk", chunk, remoteexec.TextChunk{Text: "A\uFFFD", NextOffset: 3})
		}},
		{ID: "C128", Name: "both streams move at once", Run: func(w *World) {
			h := w.Start(w.Sh(`i=0; while [ $i -lt 100 ]; do head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2; i=$((i+1)); done`))
			w.Ends(w.Settle(h), "0")
			w.Equal("stdout", h.Collected(remoteexec.Stdout).Total(), int64(10_000_000))
			w.Equal("stderr", h.Collected(remoteexec.Stderr).Total(), int64(10_000_000))
		}},
		{ID: "C129", Name: "closing stdout is not the end", Run: func(w *World) {
			spec := w.Sh("exec >&-; echo closed >&2; read -r x; exit 4")
			spec.Stdin = remoteexec.StdinPipe
			h := w.Start(spec)
			w.Await(h, remoteexec.Stderr, "closed")
			select {
			case <-h.Done():
				w.Errorf("the program settled when it closed stdout")
			case <-time.After(300 * time.Millisecond):
			}
			h.Stdin().Close()
			w.Ends(w.Settle(h), "4")
		}},
		{ID: "C130", Name: "a slow reader of a raw stream loses nothing", Excuse: needsPauses, Run: slowReader},
		{ID: "C131", Name: "closing a raw stream breaks the program's pipe", Excuse: needsPauses, Run: func(w *World) {
			spec := w.Spec("yes")
			spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputPipe}
			h := w.Start(spec)
			if _, err := io.ReadFull(h.Pipe(remoteexec.Stdout), make([]byte, 1024)); err != nil {
				w.Errorf("read: %v", err)
			}
			h.Pipe(remoteexec.Stdout).Close()
			if r := w.Settle(h); r.Err != nil || r.Outcome == (remoteexec.Outcome{}) {
				w.Errorf("yes ended with %+v, %v", r.Outcome, r.Err)
			}
		}},
		{ID: "C223", Name: "an unread raw stream stops the program, not our memory", Alone: true, Excuse: needsPauses, Run: func(w *World) {
			spec := w.Sh(`yes | head -c 200000000; echo done >&2`)
			spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputPipe}
			h := w.Start(spec)
			before := heap()
			select {
			case <-h.Done():
				w.Errorf("the program ended although nobody read")
			case <-time.After(time.Second):
			}
			w.Equal("memory grew", heap() > before+16<<20, false)
			h.Terminate()
			w.Quiescent(h)
			h.Pipe(remoteexec.Stdout).Close()
			w.Settle(h)
		}},
	}
}

// lines200 prints 200 numbered lines.
const lines200 = `i=1; while [ $i -le 200 ]; do printf 'line-%04d\n' $i; i=$((i+1)); done`

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func longStream(w *World) {
	spec := w.Sh(`head -c 100000000 /dev/zero | tr '\0' x`)
	spec.Stdout = collect(65536)
	before := heap()
	h := w.Start(spec)
	r := w.Settle(h)
	w.Ends(r, "0")
	w.Equal("text", r.Out == strings.Repeat("x", 65536), true)
	chunk, _ := h.Collected(remoteexec.Stdout).ReadText(0)
	w.Equal("next offset", chunk.NextOffset, int64(100_000_000))
	w.Equal("lossy", chunk.Lossy, true)
	w.Equal("truncated", r.Stdout.Truncated, true)
	w.Equal("memory grew", w.Facts.Pauses && heap() > before+16<<20, false)
}

func (w *World) truncated(n int, want bool) {
	w.Helper()
	spec := w.Spec("printf", "%s", strings.Repeat("a", n-1)+"z")
	spec.Stdout = collect(500)
	h := w.Start(spec)
	r := w.Settle(h)
	chunk, _ := h.Collected(remoteexec.Stdout).ReadText(0)
	w.Equal("lossy", chunk.Lossy, want)
	w.Equal("truncated", r.Stdout.Truncated, want)
	w.Equal("text", chunk.Text, strings.Repeat("a", 499)+"z")
}

func twoCursors(w *World) {
	spec := w.Sh(`i=1; while [ $i -le 50 ]; do echo "line $i"; sleep 0.01; i=$((i+1)); done`)
	h := w.Start(spec)
	fast, slow := &cursor{c: h.Collected(remoteexec.Stdout)}, &cursor{c: h.Collected(remoteexec.Stdout)}
	for turn := 0; ; turn++ {
		fast.read(w)
		if turn%7 == 0 {
			slow.read(w)
		}
		select {
		case <-h.Done():
			fast.read(w)
			slow.read(w)
			w.Ends(w.Settle(h), "0")
			w.Equal("fast and slow", fast.text.String() == slow.text.String(), true)
			w.Equal("everything", fast.text.String(), w.Text(h, remoteexec.Stdout))
			w.Equal("last line", strings.HasSuffix(fast.text.String(), "line 50\n"), true)
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// cursor is one reader of a stream.
type cursor struct {
	c    *remoteexec.Collected
	at   int64
	text strings.Builder
}

func (r *cursor) read(w *World) remoteexec.TextChunk {
	chunk, err := r.c.ReadText(r.at)
	if err != nil {
		w.Errorf("read: %v", err)
	}
	r.at = chunk.NextOffset
	r.text.WriteString(chunk.Text)
	return chunk
}

func deltas(w *World) {
	spec := w.Sh("echo one; read -r x; echo two")
	spec.Stdin = remoteexec.StdinPipe
	h := w.Start(spec)
	w.Await(h, remoteexec.Stdout, "one\n")
	r := &cursor{c: h.Collected(remoteexec.Stdout)}
	w.Equal("first", r.read(w).Text, "one\n")
	h.Stdin().Close()
	w.Settle(h)
	at := r.at
	w.Equal("rest", r.read(w).Text, "two\n")
	again, _ := r.c.ReadText(at)
	w.Equal("again", again, remoteexec.TextChunk{Text: "two\n", NextOffset: 8})
}

func splitCharacter(w *World) {
	spec := w.Sh(`printf 'A\342\202'; read -r x; printf '\254B'`)
	spec.Stdin = remoteexec.StdinPipe
	h := w.Start(spec)
	c := h.Collected(remoteexec.Stdout)
	w.Eventually("three bytes", func() bool { return c.Total() == 3 })
	r := &cursor{c: c}
	w.Equal("first", r.read(w), remoteexec.TextChunk{Text: "A", NextOffset: 1})
	w.Equal("nothing new", r.read(w), remoteexec.TextChunk{NextOffset: 1})
	h.Stdin().Close()
	w.Settle(h)
	r.read(w)
	w.Equal("together", r.text.String(), "A€B")
}

func slowReader(w *World) {
	const total = 50_000_000
	spec := w.Sh(`yes | head -c 50000000; echo written >&2`)
	spec.Stdout = remoteexec.Output{Mode: remoteexec.OutputPipe}
	h := w.Start(spec)
	select {
	case <-h.Done():
		w.Errorf("the program was not held back")
	case <-time.After(time.Second):
	}
	w.Equal("blocked", w.Text(h, remoteexec.Stderr), "")
	sum := sha256.New()
	n, err := io.Copy(sum, h.Pipe(remoteexec.Stdout))
	h.Pipe(remoteexec.Stdout).Close()
	w.Equal("bytes", n, int64(total))
	w.Equal("error", err, nil)
	want := sha256.Sum256([]byte(strings.Repeat("y\n", total/2)))
	w.Equal("digest", hex.EncodeToString(sum.Sum(nil)), hex.EncodeToString(want[:]))
	w.Ends(w.Settle(h), "0")
}
