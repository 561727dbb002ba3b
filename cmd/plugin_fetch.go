package cmd

import (
	"bufio"
	"fmt"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/plugin"
)

// downloadBar shows one download on a terminal.
type downloadBar struct {
	a    *app
	what string
	bar  *progress
}

// downloads begins a bar for each download.
func (a *app) downloads(what string) plugin.Progress {
	what, _, _ = strings.Cut(what, "?")
	return &downloadBar{a: a, what: "fetching " + visible(path.Base(what))}
}

// Begin makes the bar when the size is known.
func (d *downloadBar) Begin(size int64) { d.bar = d.a.startProgress(d.what, size) }

// Write counts bytes.
func (d *downloadBar) Write(p []byte) (int, error) {
	if d.bar != nil {
		d.bar.add(len(p))
	}
	return len(p), nil
}

// Close takes the bar away.
func (d *downloadBar) Close() error {
	d.bar.stop()
	return nil
}

// confirmer gives what asks a person, nil where nobody can be asked: without a
// terminal at both ends, or with --no-input.
func (a *app) confirmer() func(id string, adds []string) bool {
	if a.flags.noInput || !a.Terminal(a.In) || !a.Terminal(a.Err) {
		return nil
	}
	return func(id string, adds []string) bool {
		fmt.Fprintf(a.Err, "%s adds %s. Go on? [y/N] ", id, visible(strings.Join(adds, ", ")))
		answer, _ := bufio.NewReader(a.In).ReadString('\n')
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes"
	}
}
