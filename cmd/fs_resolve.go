package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

func newFSResolve(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "resolve PATH",
		Short: "Print the identity of a file, which need not exist",
		Long: "Print the key by which the world knows a file, its display path, the path by which a process in " +
			"the world opens it, and its file: URL. Two spellings of one file have one key.",
	}
	return a.resolving(c, func(fs remotefs.FS, t remotefs.Target) error {
		r := newTargetResult(fs, t)
		if a.flags.json {
			return writeJSON(a.Out, r)
		}
		path, err := fs.ProcessPath(t)
		if err != nil {
			return err
		}
		url, err := fs.FileURL(t)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "key      %s\ndisplay  %s\npath     %s\nurl      %s\n", t.Key, t.Display, path, url)
		return err
	})
}

func newFSPath(a *app) *cobra.Command {
	c := &cobra.Command{Use: "path PATH", Short: "Print the path by which a process in the world opens a file"}
	return a.resolving(c, func(fs remotefs.FS, t remotefs.Target) error {
		path, err := fs.ProcessPath(t)
		if err != nil {
			return err
		}
		return a.writeLine("path", path)
	})
}

func newFSURL(a *app) *cobra.Command {
	c := &cobra.Command{Use: "url PATH", Short: "Print the file: URL of a file"}
	return a.resolving(c, func(fs remotefs.FS, t remotefs.Target) error {
		url, err := fs.FileURL(t)
		if err != nil {
			return err
		}
		return a.writeLine("url", url)
	})
}

// resolving makes c resolve its one argument and hand the target to show.
func (a *app) resolving(c *cobra.Command, show func(remotefs.FS, remotefs.Target) error) *cobra.Command {
	c.Args = exactly(1, "one PATH")
	c.ValidArgsFunction = a.completePath
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.withFiles(ctx, func(fs remotefs.FS) error {
			t, err := fs.Resolve(ctx, args[0], "")
			if err != nil {
				return err
			}
			return show(fs, t)
		})
	})
	return c
}

// writeLine prints a value on a line of its own, or as the one field of an
// object.
func (a *app) writeLine(field, value string) error {
	if a.flags.json {
		return writeJSON(a.Out, map[string]string{field: value})
	}
	_, err := fmt.Fprintln(a.Out, value)
	return err
}
