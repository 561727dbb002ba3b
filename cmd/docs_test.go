package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// generatedTree is the whole command tree.
func generatedTree() *cobra.Command {
	return newRoot(&app{Streams: &Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}, []string{"docs"})
}

// What is generated is what the commands say now.
func TestGeneratedFilesAreFresh(t *testing.T) {
	files, err := documents(generatedTree())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not fresh (%v): run make docs", name, err)
		}
	}
	for _, dir := range []string{"man", "completions"} {
		entries, err := os.ReadDir(filepath.Join("..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if files[dir+"/"+e.Name()] == nil {
				t.Errorf("%s/%s belongs to no command: remove it", dir, e.Name())
			}
		}
	}
}

// Each flag that takes a value says its default, or that it has none to say.
func TestEveryFlagSaysItsDefault(t *testing.T) {
	for _, c := range documented(generatedTree()) {
		check := func(f *pflag.Flag) {
			said := !isZero(f.DefValue) || f.Value.Type() == "bool" || f.Value.Type() == "count"
			for _, word := range []string{"default", "required", "repeatable"} {
				said = said || strings.Contains(f.Usage, word)
			}
			if !said {
				t.Errorf("%s --%s does not say its default: %q", c.CommandPath(), f.Name, f.Usage)
			}
		}
		c.LocalFlags().VisitAll(check)
	}
}

// Each command explains itself and refuses arguments it does not know.
func TestEveryCommandChecksItsArguments(t *testing.T) {
	for _, c := range documented(generatedTree()) {
		if c.Short == "" {
			t.Errorf("%s has no short text", c.CommandPath())
		}
		if c.Args == nil && c.Name() != "help" {
			t.Errorf("%s does not check its arguments", c.CommandPath())
		}
		if c.RunE == nil {
			t.Errorf("%s does nothing", c.CommandPath())
		}
	}
}
