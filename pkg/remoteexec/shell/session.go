package shell

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/fault"
)

// Bounds of one command in a persistent shell (TS-17).
const (
	RunTimeoutMs = 300_000
	maxRunChars  = 16_000   // kept, from the beginning
	maxRunBytes  = 64 << 10 // looked at, escapes included
)

// Session is the talk with a persistent interactive bash on a terminal
// (remoteexec.md 14). It knows by marks in the output, and never by waiting, when
// the shell is ready and where a command's output begins and ends. The marks hold
// a random word and bytes that do not stand in what is typed, so neither echo nor
// output can be taken for them.
//
// The owner hands it the output by Feed. Methods may run at the same time.
type Session struct {
	word string

	mu      sync.Mutex
	held    []byte // output that may begin a mark
	prompts int
	prompt  chan struct{} // closed and renewed at each prompt
	run     *run
}

// run is the command that runs.
type run struct {
	word string
	out  []byte
	in   bool // behind the first mark
	over bool // more came than is looked at
	done chan int
}

// NewSession makes the talk with a shell that is about to be started.
func NewSession() *Session { return &Session{word: randomWord(), prompt: make(chan struct{})} }

func randomWord() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Prompt is what the shell shows when it is ready.
const Prompt = "afield$ "

// Environment gives what the shell's environment needs: its prompt tells, before
// it is shown, how the command before it has ended (TS-5). A changed prompt lasts
// one command.
func (s *Session) Environment() map[string]string {
	return map[string]string{
		"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "PS1": Prompt,
		"PROMPT_COMMAND": `printf '\033]133;D;%s;` + s.word + `\007' "$?"; PS1='` + Prompt + `'`,
	}
}

// Setup is typed at the first prompt: it turns the echo off.
const Setup = "stty -echo\r"

// Prompted gives how many prompts there were, and a channel that is closed at the
// next one.
func (s *Session) Prompted() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompts, s.prompt
}

// Begin takes a command and gives the line to type and the channel on which its
// status comes. One command at a time.
func (s *Session) Begin(command string) (line string, done <-chan int, err error) {
	if strings.ContainsRune(command, 0) || !utf8.ValidString(command) {
		return "", nil, fault.New(fault.ExecInvalidSpec, "run", "", "a command for a shell is UTF-8 text without NUL")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return "", nil, fault.New(fault.ExecSendActive, "run", "", "another command runs in this shell")
	}
	r := &run{word: randomWord(), done: make(chan int, 1)}
	s.run = r
	const form = `printf '\036b%s\036' %s; eval %s; printf '\036e%s:%%d\036' "$?"` + "\r"
	return fmt.Sprintf(form, "%s", r.word, quote(command), r.word), r.done, nil
}

// End gives the output of the command, as far as it has come, and makes room for
// the next. truncated: there was more than is kept.
func (s *Session) End() (output string, truncated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	s.run = nil
	if r == nil {
		return "", false
	}
	text := Clean(string(r.out))
	if n := utf8.RuneCountInString(text); n > maxRunChars {
		return string([]rune(text)[:maxRunChars]), true
	}
	return text, r.over
}

// quote writes a command as one word on one line that only bash's own reader
// understands: what is not plain is an octal escape, so neither line editing nor
// history looks at it.
func quote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		c := s[i]
		if c == ' ' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("/.,-_=:+%@", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, `\%03o`, c)
	}
	b.WriteString("'")
	return b.String()
}

// Feed takes the next output of the terminal.
func (s *Session) Feed(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, p...)
	for len(s.held) > 0 {
		n := s.step(s.held)
		if n == 0 {
			return
		}
		s.held = s.held[n:]
	}
	s.held = nil
}

// step takes a first part of the output: plain bytes, or one mark. It gives 0
// where more is needed to know.
func (s *Session) step(p []byte) int {
	at := bytes.IndexAny(p, "\x1e\x1b")
	switch {
	case at < 0:
		s.plain(p)
		return len(p)
	case at > 0:
		s.plain(p[:at])
		return at
	}
	mark, whole, maybe := s.mark(p)
	switch {
	case whole:
		return len(mark)
	case maybe:
		return 0
	}
	s.plain(p[:1])
	return 1
}

// maxMark bounds a mark, in bytes.
const maxMark = 80

// mark takes a mark at the beginning of p. maybe: p may be the beginning of one.
func (s *Session) mark(p []byte) (mark []byte, whole, maybe bool) {
	end := byte(0x1e)
	if p[0] == 0x1b {
		end = 0x07
	}
	n := bytes.IndexByte(p[1:min(len(p), maxMark)], end)
	if n < 0 {
		return nil, false, len(p) < maxMark && (p[0] == 0x1e || bytes.HasPrefix([]byte("\x1b]133;D;"), p[:min(len(p), 8)]))
	}
	mark, text := p[:n+2], string(p[1:n+1])
	r := s.run
	switch {
	case p[0] == 0x1b && strings.HasPrefix(text, "]133;D;") && strings.HasSuffix(text, ";"+s.word):
		s.prompts++
		close(s.prompt)
		s.prompt = make(chan struct{})
		return mark, true, false
	case r != nil && p[0] == 0x1e && text == "b"+r.word:
		r.in, r.out = true, nil
		return mark, true, false
	case r != nil && p[0] == 0x1e && r.in && strings.HasPrefix(text, "e"+r.word+":"):
		status, _ := strconv.Atoi(text[len(r.word)+2:])
		r.in = false
		r.done <- status
		return mark, true, false
	}
	return nil, false, false
}

// plain takes output that is no mark.
func (s *Session) plain(p []byte) {
	r := s.run
	if r == nil || !r.in {
		return
	}
	if room := maxRunBytes - len(r.out); len(p) > room {
		p, r.over = p[:room], true
	}
	r.out = append(r.out, p...)
}
