package local

import "syscall"

// times gives the times of content and of status.
func times(st *syscall.Stat_t) (content, status syscall.Timespec) {
	return st.Mtimespec, st.Ctimespec
}
