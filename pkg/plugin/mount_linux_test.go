package plugin

import (
	"syscall"
	"testing"
)

// mountTmpfs puts a small file system over a directory until it is called off.
func mountTmpfs(t *testing.T, dir, options string) func() {
	t.Helper()
	var flags uintptr
	data := options
	if options == "ro" {
		flags, data = syscall.MS_RDONLY, "mode=700"
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, data); err != nil {
		missing(t, "cannot mount: "+err.Error())
	}
	done := false
	unmount := func() {
		if !done {
			done = true
			syscall.Unmount(dir, syscall.MNT_DETACH)
		}
	}
	t.Cleanup(unmount)
	return unmount
}
