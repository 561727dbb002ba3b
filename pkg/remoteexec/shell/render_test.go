package shell

import (
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/remoteexec"
)

// SH-8: the order of the parts, and line breaks only where they are needed.
func TestRender(t *testing.T) {
	chunk := func(text string, lossy bool, path string) remoteexec.TextChunk {
		return remoteexec.TextChunk{Text: text, Lossy: lossy, SpillPath: path}
	}
	for _, c := range []struct {
		name string
		in   Result
		want string
	}{
		{"plain", Result{Stdout: chunk("out\n", false, "")}, "out\n"},
		{"both", Result{Stdout: chunk("out\n", false, ""), Stderr: chunk("err", false, "")}, "out\n[stderr]\nerr"},
		{"stderr only", Result{Stderr: chunk("err\n", false, "")}, "[stderr]\nerr\n"},
		{"truncated", Result{Stdout: chunk("tail", true, "/f")}, "tail\n[output truncated; full output: /f]"},
		{"all", Result{
			Report: remoteexec.Report{Outcome: remoteexec.Outcome{Signal: "SIGKILL"}}, TimedOut: true, Timeout: 5 * time.Second,
			Stdout: chunk("o", true, ""), Stderr: chunk("e", true, "/e"),
		}, "o\n[output truncated; full output: (unavailable)]\n[stderr]\ne\n[output truncated; full output: /e]\n[timed out after 5000ms]\n[killed by signal: SIGKILL]"},
	} {
		if got := Render(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// C300, SH-9: only a last line after a line break is the outcome.
func TestParse(t *testing.T) {
	for text, want := range map[string]remoteexec.Outcome{
		"out\n[exit code: 3]":            {ExitCode: 3},
		"[exit code: 3]":                 {},
		"out\n[exit code: 3]\n":          {},
		"out\n[exit code: 3] ":           {},
		"out\n[exit code: 300]":          {},
		"out\n[exit code: x]":            {},
		"out\n[killed by signal: SIG34]": {Signal: "SIG34"},
		"out\n[killed by signal: ]":      {},
		"":                               {},
		"[exit code: 4]\n[exit code: 5]": {ExitCode: 5},
	} {
		if got := Parse(text); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}
