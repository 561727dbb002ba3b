//go:build !darwin

package local

import "syscall"

// times gives the times of content and of status.
func times(st *syscall.Stat_t) (content, status syscall.Timespec) { return st.Mtim, st.Ctim }
