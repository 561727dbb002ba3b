package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

type fsLsOptions struct {
	path string
	null bool
}

// lsResult is the JSON of fs ls.
type lsResult struct {
	Target  targetResult `json:"target"`
	Entries []lsEntry    `json:"entries"`
}

type lsEntry struct {
	Name       string        `json:"name"`
	NameBase64 *string       `json:"nameBase64"`
	Type       remotefs.Type `json:"type"`
	Size       *int64        `json:"size"`
	Version    *string       `json:"version"`
	Target     targetResult  `json:"target"`
}

func newFSLs(a *app) *cobra.Command {
	opts := fsLsOptions{path: "."}
	c := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List a directory",
		Long: "List a directory in byte order of the names: type, size in bytes and name on a terminal, one name " +
			"a line elsewhere. Types and sizes are those of what a link leads to. PATH defaults to the working directory.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePath,
	}
	c.Flags().BoolVarP(&opts.null, "null", "0", false, "end each name with a NUL byte and print nothing else")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if len(args) == 1 {
			opts.path = args[0]
		}
		if opts.null && a.flags.json {
			return usage("--null and --json cannot be used together")
		}
		return a.withFiles(ctx, func(fs remotefs.FS) error { return runFSLs(ctx, a, fs, opts) })
	})
	return c
}

func runFSLs(ctx context.Context, a *app, fs remotefs.FS, opts fsLsOptions) error {
	t, entries, err := fs.ListDir(ctx, remotefs.AtPath(opts.path, ""))
	if err != nil {
		return err
	}
	switch {
	case a.flags.json:
		return writeJSON(a.Out, newLsResult(fs, t, entries))
	case !opts.null && a.Terminal(a.Out):
		return a.writeColumns(entries)
	}
	end := "\n"
	if opts.null {
		end = "\x00"
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(rawName(e))
		b.WriteString(end)
	}
	_, err = a.Out.Write([]byte(b.String()))
	return err
}

func newLsResult(fs remotefs.FS, t remotefs.Target, entries []remotefs.DirEntry) lsResult {
	r := lsResult{Target: newTargetResult(fs, t), Entries: make([]lsEntry, len(entries))}
	for i, e := range entries {
		r.Entries[i] = lsEntry{e.Name, base64OrNull([]byte(rawName(e))), e.Type,
			sizeOrNull(e.Size), orNull(e.Version), newTargetResult(fs, e.Target)}
	}
	return r
}

// rawName gives the bytes of the name.
func rawName(e remotefs.DirEntry) string {
	if e.RawName != nil {
		return string(e.RawName)
	}
	return e.Name
}

// writeColumns writes the listing for a person.
func (a *app) writeColumns(entries []remotefs.DirEntry) error {
	width := 1
	for _, e := range entries {
		if e.Size >= 0 {
			width = max(width, len(fmt.Sprint(e.Size)))
		}
	}
	var b strings.Builder
	for _, e := range entries {
		size := "-"
		if e.Size >= 0 {
			size = fmt.Sprint(e.Size)
		}
		name := visible(e.Name)
		if e.Type == remotefs.TypeDirectory {
			name = a.paint(blue, name) + "/"
		}
		fmt.Fprintf(&b, "%-9s  %*s  %s\n", e.Type, width, size, name)
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
