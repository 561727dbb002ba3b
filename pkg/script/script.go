// Package script holds POSIX sh programs for small file operations and process
// starts in a world that has nothing of ours installed, and the encoding of
// their words and answers. Backends that can run one command line or one
// argument vector share it.
//
// A program is one fixed line without a single quote, a newline, or a backslash
// before anything but a digit or "$", so that every login shell leaves it alone
// between single quotes. What varies travels as words beside it: "=literal" or
// "%octal". The script itself never arrives on the input, because some shells
// read ahead; environment values do, because a command line is visible.
//
// Every answer begins with the call's nonce on a line of its own, so that the
// noise of banners and profiles before it can be told apart.
package script

import (
	"crypto/rand"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed sh/*.sh
var sources embed.FS

// Call is one run of a program.
type Call struct {
	// Name is the program, for traces.
	Name string
	// Nonce marks the beginning of the answer and names private files.
	Nonce string
	// Words are encoded.
	Words []string
	// Input is to be sent first on the program's standard input.
	Input []byte
	// Home, if not "", is the home directory that the login is believed to have.
	// The program does nothing when it has another: Moved.
	Home string
}

// Program gives the text of the named program, one line.
func Program(name string) string {
	var b strings.Builder
	for _, part := range append(heads(name), name) {
		text, err := sources.ReadFile("sh/" + part + ".sh")
		if err != nil {
			panic(err) // a name that the package itself misspells
		}
		if part != "lib" && part == name && name != "start" {
			b.WriteString(`printf "%s\012" "$1"; [ "$0" = afield ] || { word "$0"; [ "$v" = "$HOME" ] || fail moved; }; `)
		}
		join(&b, string(text))
	}
	return strings.TrimSuffix(strings.TrimSpace(b.String()), ";")
}

// heads are the shared parts before a program.
func heads(name string) []string {
	switch name {
	case "start":
		return nil
	case "stat", "lstat", "list", "read", "settle":
		return []string{"lib", "files"}
	case "store":
		return []string{"lib", "files", "stage", "trailer"}
	case "move", "copy":
		return []string{"lib", "place"}
	case "remove", "walk", "send", "receive":
		return []string{"lib", "files"}
	case "write", "upload", "publish":
		return []string{"lib", "files", "stage"}
	case "members", "kill", "end", "quiet":
		return []string{"lib", "proc"}
	default:
		return []string{"lib"}
	}
}

// join appends the lines of a source without comments and indentation.
func join(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		b.WriteString(line)
		b.WriteByte(' ')
	}
}

// Argv is the call as an argument vector.
func (c Call) Argv() []string {
	return append([]string{"sh", "-c", Program(c.Name), c.title(), c.Nonce}, c.Words...)
}

// title is the program's own name, in which the believed home travels.
func (c Call) title() string {
	if c.Home == "" {
		return "afield"
	}
	return Word(c.Home)
}

// Line is the call as a command line for any login shell. Exec puts the program
// in the shell's place; a restricted shell forbids that.
func (c Call) Line(exec bool) string {
	var b strings.Builder
	if exec {
		b.WriteString("exec ")
	}
	b.WriteString("sh -c '" + Program(c.Name) + "' '" + c.title() + "' " + c.Nonce)
	for _, w := range c.Words {
		b.WriteString(" '" + w + "'")
	}
	return b.String()
}

// NewNonce gives 32 hexadecimal digits that nobody can guess.
func NewNonce() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// call makes a call whose words are encoded already.
func call(name string, words ...string) Call {
	return Call{Name: name, Nonce: NewNonce(), Words: words}
}
