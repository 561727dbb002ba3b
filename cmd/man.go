package cmd

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manPage writes the manual page of a command. It holds no date and no version,
// so that it changes only when the command does.
func manPage(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag() // merges the inherited flags, which the synopsis looks at
	m := &man{}
	m.macro(".TH", strings.ToUpper(pageName(c)), "1", "", "afield", "afield manual")
	m.macro(".SH", "NAME")
	m.text(pageName(c) + " - " + c.Short)
	m.macro(".SH", "SYNOPSIS")
	m.text(c.UseLine())
	m.macro(".SH", "DESCRIPTION")
	m.text(orElse(c.Long, c.Short+"."))
	m.children(c)
	m.flags("OPTIONS", c.NonInheritedFlags())
	m.flags("GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		m.macro(".SH", "EXAMPLES")
		m.text(c.Example)
	}
	m.macro(".SH", "EXIT STATUS")
	if passesChildStatus(c) {
		m.text("The status of the program; 124 when --timeout passed, 125 when afield failed, 126 when the " +
			"program was found and could not be executed, 127 when it was not found, 128+n when it died by signal n.")
	} else {
		m.text("0 when done, otherwise the class of the error: see afield-errors(7).")
	}
	m.seeAlso(c)
	return m.b.Bytes()
}

// man writes roff.
type man struct{ b bytes.Buffer }

func (m *man) macro(name string, args ...string) {
	m.b.WriteString(name)
	for _, arg := range args {
		fmt.Fprintf(&m.b, " \"%s\"", escapeRoff(arg))
	}
	m.b.WriteByte('\n')
}

// text writes paragraphs; lines that are indented keep their shape.
func (m *man) text(s string) {
	verbatim := false
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !verbatim:
			m.b.WriteString(".PP\n.nf\n.RS 4\n")
		case !indented && verbatim:
			m.b.WriteString(".RE\n.fi\n")
		}
		verbatim = indented
		switch {
		case line == "":
			m.b.WriteString(".PP\n")
		case indented:
			m.line(strings.TrimPrefix(line, "    "))
		default:
			m.line(line)
		}
	}
	if verbatim {
		m.b.WriteString(".RE\n.fi\n")
	}
}

// line writes one line; a dot or quote at its start is no macro.
func (m *man) line(s string) {
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		m.b.WriteString(`\&`)
	}
	m.b.WriteString(escapeRoff(s) + "\n")
}

// item writes a term and what it means.
func (m *man) item(term, meaning string) {
	m.b.WriteString(".TP\n\\fB" + escapeRoff(term) + "\\fR\n")
	m.line(meaning)
}

func (m *man) children(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	m.macro(".SH", "COMMANDS")
	for _, child := range c.Commands() {
		if !child.Hidden {
			m.item(pageName(child)+"(1)", child.Short)
		}
	}
}

func (m *man) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	m.macro(".SH", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, meaning := pflag.UnquoteUsage(f)
		if value != "" && !isZero(f.DefValue) {
			meaning += " (default: " + f.DefValue + ")"
		}
		term := "--" + f.Name
		if f.Shorthand != "" {
			term = "-" + f.Shorthand + ", " + term
		}
		if value != "" {
			term += " " + value
		}
		m.item(term, meaning)
	})
}

// isZero reports whether a flag has no default worth a word.
func isZero(def string) bool {
	return def == "" || def == "0" || def == "[]" || def == "false" || def == "0s"
}

func (m *man) seeAlso(c *cobra.Command) {
	pages := []string{"afield-errors(7)"}
	if c.HasParent() {
		pages = append([]string{pageName(c.Parent()) + "(1)"}, pages...)
	}
	m.macro(".SH", "SEE ALSO")
	m.text(strings.Join(pages, ", "))
}

// escapeRoff keeps backslashes, and hyphens that are typed.
func escapeRoff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
