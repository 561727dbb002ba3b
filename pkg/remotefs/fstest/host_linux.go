package fstest

import (
	"fmt"
	"syscall"
)

// MountingHost is Host for a process that may mount.
type MountingHost struct{ Host }

// MountSmall mounts a file system in memory.
func (MountingHost) MountSmall(dir string, size int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
}

// MountReadOnly makes a mount read-only.
func (MountingHost) MountReadOnly(dir string) error {
	return syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

// Bind mounts a file on a file.
func (MountingHost) Bind(from, to string) error {
	return syscall.Mount(from, to, "", syscall.MS_BIND, "")
}

// Unmount ends a mount.
func (MountingHost) Unmount(path string) error { return syscall.Unmount(path, syscall.MNT_DETACH) }
