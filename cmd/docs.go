package cmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

type docsOptions struct{ out string }

func newDocs(a *app) *cobra.Command {
	opts := docsOptions{}
	c := &cobra.Command{
		Use:    "docs --out DIR",
		Short:  "Write the manual pages and completion scripts",
		Hidden: true,
		Args:   none,
	}
	c.Flags().StringVar(&opts.out, "out", "", "`directory` that gets man/ and completions/ (required)")
	c.MarkFlagRequired("out")
	c.RunE = a.run(func(context.Context, []string) error { return runDocs(c.Root(), opts) })
	return c
}

// runDocs writes one manual page for each command, the page of error codes, and
// a completion script for each shell.
func runDocs(root *cobra.Command, opts docsOptions) error {
	files, err := documents(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(opts.out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// documents gives all generated files by their path in the checkout.
func documents(root *cobra.Command) (map[string][]byte, error) {
	files := map[string][]byte{"man/afield-errors.7": errorsPage()}
	for _, c := range documented(root) {
		files["man/"+pageName(c)+".1"] = manPage(c)
	}
	for _, s := range shells() {
		var b bytes.Buffer
		if err := s.gen(root, &b); err != nil {
			return nil, err
		}
		files["completions/"+s.file] = b.Bytes()
	}
	return files, nil
}

// documented gives c and all commands below it that are shown to users.
func documented(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, child := range c.Commands() {
		if !child.Hidden {
			all = append(all, documented(child)...)
		}
	}
	return all
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
