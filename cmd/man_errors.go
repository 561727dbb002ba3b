package cmd

import (
	"fmt"

	"github.com/afield-dev/afield/pkg/fault"
)

// codeDoc is the manual line of an error code.
type codeDoc struct {
	code fault.Code
	when string
}

// errorsPage writes afield-errors(7).
func errorsPage() []byte {
	m := &man{}
	m.macro(".TH", "AFIELD-ERRORS", "7", "", "afield", "afield manual")
	m.macro(".SH", "NAME")
	m.text("afield-errors - error codes and exit statuses of afield")
	m.macro(".SH", "DESCRIPTION")
	m.text("A command that fails prints one line on standard error and exits with the status of its class. " +
		"With --json the line is an object:\n\n" +
		`    {"error":{"code","message","op","path","backend","hint","retryable","exit"}}` + "\n\n" +
		"Facts that are not known are null. The field retryable is true when nothing happened and the same call may " +
		"succeed later, false when it will fail again until something is changed, and null when the operation may have " +
		"taken effect. The list of codes is closed and only grows; scripts decide by the code or by the status, never by the message.")
	m.macro(".SH", "EXIT STATUS")
	for _, s := range statusDocs() {
		m.item(s.status, s.meaning)
	}
	m.macro(".SH", "EXIT STATUS OF EXEC AND TERM")
	for _, s := range execStatusDocs() {
		m.item(s.status, s.meaning)
	}
	m.macro(".SH", "CODES")
	for _, d := range codeDocs() {
		m.item(string(d.code), fmt.Sprintf("(%s) %s", statusWord(d.code), d.when))
	}
	return m.b.Bytes()
}

// statusWord gives the status of a code as the manual shows it.
func statusWord(code fault.Code) string {
	switch code {
	case fault.FSAborted, fault.ExecCancelled, fault.SearchAborted:
		return "124, 129, 130 or 143 by cause"
	}
	return fmt.Sprint(statusOf(code))
}

type statusDoc struct{ status, meaning string }

func statusDocs() []statusDoc {
	return []statusDoc{
		{"0", "done"},
		{"1", "unclassified: a defect of afield"},
		{"2", "usage, profile, configuration"},
		{"3", "not there"},
		{"4", "a guard refused"},
		{"5", "wrong kind: not text, not a directory, not a regular file, too large"},
		{"6", "the edit did not apply"},
		{"7", "not allowed"},
		{"8", "input or output failed"},
		{"9", "the backend cannot be reached, refused us, or the world is gone"},
		{"10", "the backend cannot do that"},
		{"124", "the deadline given by --timeout passed"},
		{"129", "hung up"},
		{"130", "interrupted"},
		{"141", "standard output was closed by its reader"},
		{"143", "terminated"},
	}
}

func execStatusDocs() []statusDoc {
	return []statusDoc{
		{"0 to 255", "the status of the program"},
		{"124", "the deadline given by --timeout passed"},
		{"125", "afield failed, a lost connection included"},
		{"126", "the program was found and could not be executed"},
		{"127", "the program was not found"},
		{"128+n", "the program died by signal n, where the backend reports this as a fact"},
	}
}
