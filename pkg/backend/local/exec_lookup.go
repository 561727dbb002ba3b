//go:build unix

package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// LookPath implements remoteexec.Driver.
func (d *execDriver) LookPath(_ context.Context, command string, env remoteexec.Env) (string, error) {
	if filepath.IsAbs(command) {
		if executable(command) {
			return command, nil
		}
		return "", fault.New(fault.ExecProgramNotExecutable, "which", command, "which %s: not an executable file", command)
	}
	found, _ := search(command, effectiveEnv(d.base, env.Set, env.Remove)["PATH"], d.dir)
	if found == "" {
		return "", fault.New(fault.ExecProgramNotFound, "which", command, "which %s: not found on PATH", command)
	}
	return filepath.Join(d.dirOf(found), found), nil
}

// dirOf is the directory that a path is relative to.
func (d *execDriver) dirOf(path string) string {
	if filepath.IsAbs(path) {
		return ""
	}
	return d.dir
}

// search walks PATH from left to right for a regular file that may be executed
// (LK-4). Relative and empty elements count from base (LK-7); what they give
// stays relative to it. denied is a file of that name which may not be executed.
func search(name, path, base string) (found, denied string) {
	for _, dir := range strings.Split(path, ":") {
		candidate := dir + "/" + name
		if dir == "" {
			candidate = "./" + name
		}
		full := candidate
		if !filepath.IsAbs(candidate) {
			full = base + "/" + candidate
		}
		info, err := os.Stat(full)
		switch {
		case err != nil || !info.Mode().IsRegular():
		case executable(full):
			return candidate, ""
		case denied == "":
			denied = full
		}
	}
	return "", denied
}

// executable says that a regular file, links followed, may be executed by us.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() &&
		unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}
