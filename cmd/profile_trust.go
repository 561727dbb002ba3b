package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// untrustResult says what profile untrust did.
type untrustResult struct {
	Path    string `json:"path"`
	Trusted bool   `json:"trusted"`
	Changed bool   `json:"changed"`
}

func newProfileTrust(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "trust [PATH]",
		Short: "Trust a project's file as it is now",
		Long: "Trust the project file at PATH, or the one that counts in this directory. It may decide where commands run and " +
			"what is sent there: read it first. When its content changes it is untrusted again.",
		Args: atMost(1, "at most one PATH"),
		RunE: a.run(func(_ context.Context, args []string) error { return runTrust(a, first(args)) }),
	}
}

func newProfileUntrust(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "untrust [PATH]",
		Short: "Forget the trust in a project's file",
		Long:  "Forget the trust in the project file at PATH, or in the one that counts in this directory.",
		Args:  atMost(1, "at most one PATH"),
		RunE:  a.run(func(_ context.Context, args []string) error { return runUntrust(a, first(args)) }),
	}
}

func newProfileTrusted(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "trusted",
		Short: "List the trusted project files",
		Args:  none,
		RunE:  a.run(func(context.Context, []string) error { return runTrusted(a) }),
	}
}

// projectFile gives the absolute path of the file that an argument names: the
// file, the directory that has it, or none for the one that counts here.
func projectFile(a *app, places profile.Places, arg string) (string, error) {
	dir, err := a.Dir()
	if err != nil {
		return "", fault.Wrap(err, fault.FSIOError, "", "", "cannot find the directory of this process: %s", err)
	}
	if arg == "" {
		if path := profile.FindProject(dir, places.Home); path != "" {
			return path, nil
		}
		return "", fault.New(fault.ProfileNotFound, "trust", dir, "there is no %s here or above", profile.ProjectFile)
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(dir, arg)
	}
	if filepath.Base(arg) != profile.ProjectFile {
		arg = filepath.Join(arg, profile.ProjectFile)
	}
	return arg, nil
}

func runTrust(a *app, arg string) error {
	places := profile.NewPlaces(a.Environ)
	path, err := projectFile(a, places, arg)
	if err != nil {
		return err
	}
	t, err := places.Trust(path)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, t)
	}
	a.note("trusting %s", t.Path)
	return nil
}

func runUntrust(a *app, arg string) error {
	places := profile.NewPlaces(a.Environ)
	path, err := projectFile(a, places, arg)
	if err != nil {
		return err
	}
	changed, err := places.Untrust(path)
	if err != nil {
		return err
	}
	if a.flags.json {
		return writeJSON(a.Out, untrustResult{path, false, changed})
	}
	if !changed {
		a.note("%s was not trusted", path)
	}
	return nil
}

func runTrusted(a *app) error {
	list := profile.NewPlaces(a.Environ).Trusted()
	if a.flags.json {
		return writeJSON(a.Out, list)
	}
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "%s  %s\n", t.SHA256, visible(t.Path))
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
