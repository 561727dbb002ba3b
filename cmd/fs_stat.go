package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

type fsStatOptions struct {
	paths    []string
	noFollow bool
}

func newFSStat(a *app) *cobra.Command {
	return newStatCommand(a, false, "stat PATH...", "Print what is known of files")
}

func newFSLstat(a *app) *cobra.Command {
	return newStatCommand(a, true, "lstat PATH...", "Print what is known of files, links not followed")
}

func newStatCommand(a *app, noFollow bool, use, short string) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + ".\n\nA file that is not there is an answer: null with --json, status 3, " +
			"and a word on standard error. With several paths the JSON is an array in their order, and the " +
			"status is 3 if any is not there.",
		Args:              atLeast(1, "one PATH or more"),
		ValidArgsFunction: a.completePaths,
	}
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		return a.withFiles(ctx, func(fs remotefs.FS) error {
			return runFSStat(ctx, a, fs, fsStatOptions{args, noFollow})
		})
	})
	return c
}

func runFSStat(ctx context.Context, a *app, fs remotefs.FS, opts fsStatOptions) error {
	results := make([]*statResult, len(opts.paths))
	var absent error
	for i, path := range opts.paths {
		t, info, err := statPath(ctx, fs, path, opts.noFollow)
		if err != nil {
			return err
		}
		results[i] = newStatResult(fs, t, info)
		if info == nil {
			absent = statusError{exitAbsent}
			a.note("%s is not there", t.Display)
		}
	}
	if err := a.writeStat(results); err != nil {
		return err
	}
	return absent
}

func statPath(ctx context.Context, fs remotefs.FS, path string, noFollow bool) (remotefs.Target, *remotefs.Info, error) {
	if noFollow {
		return fs.Lstat(ctx, path, "")
	}
	return fs.Stat(ctx, remotefs.AtPath(path, ""))
}

func (a *app) writeStat(results []*statResult) error {
	if a.flags.json {
		if len(results) == 1 {
			return writeJSON(a.Out, results[0])
		}
		return writeJSON(a.Out, results)
	}
	var b strings.Builder
	for _, r := range results {
		if r == nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		writeStatText(&b, r)
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}

// writeStatText writes one fact a line; what is not known is left out.
func writeStatText(b *strings.Builder, r *statResult) {
	fact := func(name string, value *string) {
		if value != nil {
			fmt.Fprintf(b, "%-8s %s\n", name, *value)
		}
	}
	kind := string(r.Type)
	fact("path", &r.Target.DisplayPath)
	fact("type", &kind)
	if r.Size != nil {
		fmt.Fprintf(b, "%-8s %d\n", "size", *r.Size)
	}
	fact("mode", r.Mode)
	fact("owner", r.Owner)
	fact("group", r.Group)
	fact("mtime", r.ModTime)
	fact("link to", r.LinkTarget)
	fact("version", r.Version)
}
