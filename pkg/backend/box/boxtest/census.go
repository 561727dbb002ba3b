package boxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Processes gives the command lines of what runs in a box, zombies and its own
// process 1 left out.
func (s *Server) Processes(id string) ([]string, error) {
	s.mu.Lock()
	b := s.find(id)
	s.mu.Unlock()
	if b == nil {
		return nil, fmt.Errorf("no box %s", id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil {
		return nil, nil
	}
	return members(b.process.Process.Pid)
}

// members lists the other processes in the process namespace of one.
func members(first int) ([]string, error) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range dirs {
		if dir == fmt.Sprintf("/proc/%d", first) {
			continue
		}
		if in, err := os.Readlink(dir + "/ns/pid"); err != nil || in != space {
			continue
		}
		if text, err := os.ReadFile(dir + "/cmdline"); err == nil && len(text) > 0 {
			all = append(all, strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")))
		}
	}
	return all, nil
}
