package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
	"github.com/afield-dev/afield/pkg/tree"
)

type fsTreeOptions struct {
	path  string
	depth int
}

// treeResult is the JSON of fs tree.
type treeResult struct {
	Target     targetResult `json:"target"`
	Entries    []treeEntry  `json:"entries"`
	Unreadable []string     `json:"unreadable"`
}

type treeEntry struct {
	Path       string        `json:"path"`
	PathBase64 *string       `json:"pathBase64"`
	Type       remotefs.Type `json:"type"`
	Size       *int64        `json:"size"`
	Mode       string        `json:"mode"`
	ModTime    *string       `json:"mtime"`
	LinkTarget *string       `json:"linkTarget"`
}

func newFSTree(a *app) *cobra.Command {
	opts := fsTreeOptions{path: "."}
	c := &cobra.Command{
		Use:   "tree [PATH]",
		Short: "Show everything below a directory",
		Long: "Show everything below a directory, in byte order of the names, links with what they hold and not followed. " +
			"With --json a list of paths below it. PATH defaults to the working directory.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePath,
	}
	c.Flags().IntVar(&opts.depth, "depth", 0, "levels to show, 0 for all (default 0)")
	c.RunE = a.run(func(ctx context.Context, args []string) error {
		if len(args) == 1 {
			opts.path = args[0]
		}
		if opts.depth < 0 {
			return usage("--depth must not be negative")
		}
		if err := checkBlank(opts.path); err != nil {
			return err
		}
		return a.withTree(ctx, func(t *tree.Tree, fs remotefs.FS) error { return runFSTree(ctx, a, t, fs, opts) })
	})
	return c
}

func runFSTree(ctx context.Context, a *app, t *tree.Tree, fs remotefs.FS, opts fsTreeOptions) error {
	var nodes []remotefs.Node
	troubles := []string{}
	target, err := t.Walk(ctx, opts.path, remotefs.WalkOptions{Depth: opts.depth}, func(n remotefs.Node) error {
		if n.Err != nil {
			troubles = append(troubles, strings.TrimPrefix(n.Path+": ", ": ")+reasonOf(n.Err))
			a.note("warning: %s", troubles[len(troubles)-1])
		}
		if n.Path != "" {
			nodes = append(nodes, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(nodes, func(x, y remotefs.Node) int {
		return slices.Compare(strings.Split(x.Path, "/"), strings.Split(y.Path, "/"))
	})
	if a.flags.json {
		return writeJSON(a.Out, newTreeResult(fs, target, nodes, troubles))
	}
	return a.drawTree(target.Display, nodes)
}

func newTreeResult(fs remotefs.FS, target remotefs.Target, nodes []remotefs.Node, troubles []string) treeResult {
	r := treeResult{Target: newTargetResult(fs, target), Entries: make([]treeEntry, len(nodes)), Unreadable: troubles}
	for i, n := range nodes {
		e := treeEntry{Path: lossy(n.Path), PathBase64: base64OrNull([]byte(n.Path)), Type: n.Type,
			Mode: octal(n.Mode), ModTime: timeOrNull(n.ModTime), LinkTarget: orNull(lossy(n.Link))}
		if n.Type == remotefs.TypeFile {
			e.Size = &n.Size
		}
		r.Entries[i] = e
	}
	return r
}

// lossy gives bytes as text, what is not UTF-8 replaced.
func lossy(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// drawTree draws sorted nodes, each a line.
func (a *app) drawTree(root string, nodes []remotefs.Node) error {
	var b strings.Builder
	b.WriteString(visible(root) + "\n")
	last := lastOnes(nodes)
	open := map[int]bool{} // levels that go on below
	for i, n := range nodes {
		level := strings.Count(n.Path, "/")
		for l := range level {
			if open[l] {
				b.WriteString("│   ")
			} else {
				b.WriteString("    ")
			}
		}
		open[level] = !last[i]
		if last[i] {
			b.WriteString("└── ")
		} else {
			b.WriteString("├── ")
		}
		b.WriteString(a.treeName(n) + "\n")
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}

// lastOnes says of each node whether it is the last one in its directory.
func lastOnes(nodes []remotefs.Node) []bool {
	last := make([]bool, len(nodes))
	seen := map[string]bool{}
	for i, n := range slices.Backward(nodes) {
		dir := n.Path[:strings.LastIndexByte(n.Path, '/')+1]
		last[i] = !seen[dir]
		seen[dir] = true
	}
	return last
}

// treeName is what a line says of a node.
func (a *app) treeName(n remotefs.Node) string {
	name := visible(lossy(n.Path[strings.LastIndexByte(n.Path, '/')+1:]))
	switch n.Type {
	case remotefs.TypeDirectory:
		return a.paint(blue, name) + "/"
	case remotefs.TypeSymlink:
		return name + " -> " + visible(lossy(n.Link))
	}
	return name
}
