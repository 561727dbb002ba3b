package cmd

import (
	"encoding/base64"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// execResult is the JSON of exec: T is a stream.
type execResult[T any] struct {
	ExitCode   *int     `json:"exitCode"`
	Signal     *string  `json:"signal"`
	TimedOut   bool     `json:"timedOut"`
	Started    bool     `json:"started"`
	PID        *int     `json:"pid"`
	DurationMs int64    `json:"durationMs"`
	Stdout     T        `json:"stdout"`
	Stderr     T        `json:"stderr"`
	Survivors  []int    `json:"survivors"`
	EnvDropped []string `json:"envDropped"`
	Error      *failure `json:"error"`
}

// collectedStream is a stream of --json. Text is null where the kept bytes are
// not UTF-8, and Base64 where they are.
type collectedStream struct {
	Text       *string `json:"text"`
	Base64     *string `json:"base64"`
	Bytes      int64   `json:"bytes"`
	Truncated  bool    `json:"truncated"`
	Incomplete bool    `json:"incomplete"`
	SpillPath  *string `json:"spillPath"`
	SpillWorld *string `json:"spillWorld"`
}

// passedStream is a stream of --report; null bytes: the program wrote to our
// descriptor itself, and nobody counted.
type passedStream struct {
	Bytes *int64 `json:"bytes"`
}

// writeRun writes the object of --json or --report, if one is asked for.
func (a *app) writeRun(report *os.File, run execRun) error {
	switch {
	case a.flags.json:
		return writeJSON(a.Out, newExecResult(run, collectedStream{}, func(s remoteexec.Stream, r remoteexec.StreamReport) collectedStream {
			return newCollectedStream(run.handle.Collected(s), r)
		}))
	case report != nil:
		r := newExecResult(run, passedStream{}, func(_ remoteexec.Stream, r remoteexec.StreamReport) passedStream {
			return passedStream{sizeOrNull(r.Bytes)}
		})
		if err := writeJSON(report, r); err != nil {
			return hostError(err, "write", report.Name())
		}
		return nil
	}
	return nil
}

func newExecResult[T any](run execRun, none T, stream func(remoteexec.Stream, remoteexec.StreamReport) T) execResult[T] {
	r := execResult[T]{
		TimedOut: run.timedOut, Started: run.report.Started, DurationMs: run.duration.Milliseconds(),
		Stdout: none, Stderr: none,
		Survivors: orEmpty(run.survivors), EnvDropped: orEmpty(run.report.EnvDropped),
	}
	if run.err != nil {
		f := newFailure(run.err, execStatus(run.err))
		r.Error = &f
	} else if o := run.report.Outcome; o.Signal != "" {
		r.Signal = &o.Signal
	} else {
		r.ExitCode = &o.ExitCode
	}
	if run.handle == nil {
		return r
	}
	if pid := run.handle.PID(); pid > 0 && run.report.Started {
		r.PID = &pid
	}
	r.Stdout = stream(remoteexec.Stdout, run.report.Stdout)
	r.Stderr = stream(remoteexec.Stderr, run.report.Stderr)
	return r
}

func newCollectedStream(c *remoteexec.Collected, r remoteexec.StreamReport) collectedStream {
	s := collectedStream{
		Bytes: max(r.Bytes, 0), Truncated: r.Truncated, Incomplete: r.Incomplete,
		SpillPath: orNull(r.SpillPath), SpillWorld: orNull(r.SpillWorld),
	}
	kept := keptBytes(c, r.Truncated)
	if utf8.Valid(kept) {
		text := string(kept)
		s.Text = &text
	} else {
		text := base64.StdEncoding.EncodeToString(kept)
		s.Base64 = &text
	}
	return s
}

// keptBytes gives the kept end of a stream. Where the beginning is cut off, so
// is the rest of a character that the cut went through.
func keptBytes(c *remoteexec.Collected, truncated bool) []byte {
	if c == nil {
		return nil
	}
	chunk, err := c.ReadFrom(0)
	if err != nil {
		return nil
	}
	kept := chunk.Bytes
	for n := 0; truncated && n < utf8.UTFMax-1 && len(kept) > 0 && !utf8.RuneStart(kept[0]); n++ {
		kept = kept[1:]
	}
	return kept
}

// orEmpty gives a list that is [] in JSON and not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func joinInts(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}
