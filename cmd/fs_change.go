package cmd

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// fileMode is a flag of octal permission bits; -1 = not given.
type fileMode struct{ bits int }

func (m *fileMode) String() string {
	if m.bits < 0 {
		return ""
	}
	return octal(m.bits)
}

func (m *fileMode) Type() string { return "octal" }

func (m *fileMode) Set(s string) error {
	bits, err := strconv.ParseUint(s, 8, 16)
	if err != nil || bits > 0o777 {
		return fmt.Errorf("must be octal digits up to 0777")
	}
	m.bits = int(bits)
	return nil
}

// checkBlank refuses a path of blanks before any I/O (remotefs.md 15, 16).
func checkBlank(path string) error {
	if remotefs.Blank(path) {
		return usage("file_path must be a non-empty string")
	}
	return nil
}

// checkGuard refuses a guard that names no version, such as an unset variable.
func checkGuard(f *pflag.FlagSet) error {
	if f.Changed("if-version") && f.Lookup("if-version").Value.String() == "" {
		return usage("--if-version must not be empty").WithHint("afield fs stat gives the version")
	}
	return nil
}

// withBytesHint points to --bytes where the content of a write is not text.
func withBytesHint(err error) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Code == fault.FSNotText {
		e.WithHint("--bytes stores raw bytes under the same guards")
	}
	return err
}
