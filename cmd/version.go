package cmd

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the build: -ldflags "-X …".
var (
	version = "dev"
	commit  = ""
)

// protocolVersion is that of the provider protocol (plugins.md 31).
const protocolVersion = 1

type versionResult struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Protocol int    `json:"protocol"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  none,
		RunE:  a.plain(func(context.Context, []string) error { return runVersion(a) }),
	}
}

func runVersion(a *app) error {
	v := versionResult{version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, protocolVersion}
	if v.Commit == "" {
		v.Commit = vcsRevision()
	}
	if a.flags.json {
		return writeJSON(a.Out, v)
	}
	_, err := fmt.Fprintf(a.Out, "afield %s (%s, %s/%s, protocol %d)\n", v.Version, v.Go, v.OS, v.Arch, v.Protocol)
	return err
}

func vcsRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
