package cmd

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// completeTime bounds what a press of the tab key may take.
const completeTime = 2 * time.Second

// completePath completes one path in the world.
func (a *app) completePath(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completePaths(c, args, word)
}

// completePaths completes any number of paths in the world. Errors complete
// nothing: there is no place to report them.
func (a *app) completePaths(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completeTime)
	defer cancel()
	var names []string
	a.flags.quiet = true
	_ = a.withWorld(ctx, func(w *world) error {
		if !w.near {
			return nil
		}
		fs, err := w.files()
		if err == nil {
			names, err = pathsBelow(ctx, fs, word)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// pathsBelow gives the paths that begin with word: a directory ends in "/".
func pathsBelow(ctx context.Context, fs remotefs.FS, word string) ([]string, error) {
	dir, base := path.Split(word)
	at := dir
	if at == "" {
		at = "."
	}
	_, entries, err := fs.ListDir(ctx, remotefs.AtPath(at, ""))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name, ".") && !strings.HasPrefix(base, ".")
		if e.RawName != nil || hidden || !strings.HasPrefix(e.Name, base) || strings.ContainsAny(e.Name, "\n\t") {
			continue
		}
		name := dir + e.Name
		if e.Type == remotefs.TypeDirectory {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
