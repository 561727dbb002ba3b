package hugepage

import (
	"syscall"
	"unsafe"
)

const (
	size     = 2 << 20 // of a huge page
	collapse = 25      // MADV_COLLAPSE, since Linux 6.1
)

// anchor is an object of the heap that shows where the heap is.
var anchor = new([64]byte)

func init() { ask(uintptr(unsafe.Pointer(anchor)) &^ (size - 1)) }

// ask has the kernel put the pages at start into one huge page, contents and
// all. A kernel that cannot, or is told not to, refuses, and nothing is lost.
func ask(start uintptr) bool {
	_, _, errno := syscall.RawSyscall(syscall.SYS_MADVISE, start, size, collapse)
	return errno == 0
}
