package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/patch"
	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

type fsPatchOptions struct {
	file   string
	format string
	strip  int
	dryRun bool
	diff   bool
}

// patchResult is the JSON of fs patch.
type patchResult struct {
	DryRun bool              `json:"dryRun"`
	Files  []patchFileResult `json:"files"`
}

type patchFileResult struct {
	Target    targetResult `json:"target"`
	Operation string       `json:"operation"` // create, update or remove
	Version   *string      `json:"version"`
	Bytes     int64        `json:"bytes"`
	Diff      []hunkResult `json:"diff"`
}

func newFSPatch(a *app) *cobra.Command {
	opts := fsPatchOptions{}
	c := &cobra.Command{
		Use:   "patch FILE",
		Short: "Change several files together, all or none",
		Long: "Change several files together: FILE of the host, - for standard input, is a unified diff as diff -u and git " +
			"diff write it, or a JSON list:\n\n" +
			"    [{\"path\": \"a\", \"ifVersion\": \"…\", \"edits\": [{\"old\": \"x\", \"new\": \"y\", \"all\": true}]},\n" +
			"     {\"path\": \"b\", \"ifAbsent\": true, \"content\": \"…\"}, {\"path\": \"c\", \"remove\": true}]\n\n" +
			"Every guard and every hunk is checked before anything is changed; each file is published in one step; and " +
			"when a later one fails, those before it are put back, unless somebody else changed them since, which is " +
			"said. A hunk that has moved is found where it stands exactly.",
		Example: "    git diff | afield fs patch - --dry-run --diff",
		Args:    exactly(1, "one FILE"),
	}
	f := c.Flags()
	f.StringVar(&opts.format, "format", "auto", "auto, diff or json")
	f.IntVar(&opts.strip, "strip", -1, "leading parts to take away from the names of a diff; -1 = a/ and b/")
	f.BoolVar(&opts.dryRun, "dry-run", false, "change nothing; check everything and say what would be done")
	f.BoolVar(&opts.diff, "diff", false, "show the changes as a unified diff")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		opts.file = args[0]
		changes, err := a.readPatch(opts)
		if err != nil {
			return err
		}
		return a.withWorld(ctx, func(w *world) error { return runFSPatch(ctx, a, w, opts, changes) })
	})
	return c
}

// readPatch reads the changes.
func (a *app) readPatch(opts fsPatchOptions) ([]patch.Change, error) {
	switch opts.format {
	case "auto", "diff", "json":
	default:
		return nil, usage("--format must be auto, diff or json")
	}
	if opts.strip < -1 {
		return nil, usage("--strip must be -1 or more")
	}
	src, err := a.openContent(fsWriteOptions{from: opts.file})
	if err != nil {
		return nil, err
	}
	defer src.close()
	text, err := io.ReadAll(io.LimitReader(src, patch.MaxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > patch.MaxFile:
		return nil, usage("the patch is larger than %d bytes", patch.MaxFile)
	}
	first := bytes.TrimLeft(text, " \t\r\n")
	var changes []patch.Change
	if opts.format == "json" || opts.format == "auto" && len(first) > 0 && (first[0] == '[' || first[0] == '{') {
		changes, err = patch.ParseJSON(text)
	} else {
		changes, err = patch.ParseUnified(string(text), opts.strip)
	}
	if err != nil {
		return nil, usage("the patch cannot be read: %s", err)
	}
	return changes, nil
}

func runFSPatch(ctx context.Context, a *app, w *world, opts fsPatchOptions, changes []patch.Change) error {
	fs, err := w.files()
	if err != nil {
		return err
	}
	target := patch.World{Files: fs}
	if t, err := a.tree(w); err == nil {
		target.Remove = func(ctx context.Context, p, version string) error {
			_, err := t.Remove(ctx, p, tree.RemoveOptions{Version: version})
			return err
		}
	}
	results, err := patch.Apply(ctx, target, changes, opts.dryRun)
	if err != nil {
		return remotefs.Advise(err)
	}
	if a.flags.json {
		return writeJSON(a.Out, newPatchResult(fs, results, opts))
	}
	for _, r := range results {
		if opts.diff {
			err = a.writePatchDiff(r)
		} else {
			_, err = fmt.Fprintf(a.Out, "%s %s\n", r.Operation, visible(r.Target.Display))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newPatchResult(fs remotefs.FS, results []patch.Result, opts fsPatchOptions) patchResult {
	out := patchResult{DryRun: opts.dryRun, Files: make([]patchFileResult, len(results))}
	for i, r := range results {
		f := patchFileResult{Target: newTargetResult(fs, r.Target), Operation: r.Operation, Version: orNull(r.Version), Bytes: r.Bytes}
		if opts.diff {
			f.Diff = newHunks(r.Target.Display, r.Before, r.After)
		}
		out.Files[i] = f
	}
	return out
}

// writePatchDiff shows one file; of a removed one all lines go.
func (a *app) writePatchDiff(r patch.Result) error {
	after := r.After
	if after == nil {
		none := ""
		after = &none
	}
	return a.writeDiff(r.Target.Display, r.Before, after)
}
