package e2b

import (
	"context"
	"strconv"
	"strings"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/remoteexec"
)

// Foreground reads the terminal's foreground group from the session leader's
// entry of /proc, and the proof that it waits for input from that of the group:
// plain requests to the file service, no process (e2b.md 15.5).
func (t *terminal) Foreground(ctx context.Context) (*remoteexec.Foreground, error) {
	s := t.runner.session
	st, err := s.procStat(ctx, t.pid)
	if err != nil {
		if isAbsent(err) {
			return nil, nil
		}
		return nil, execError(s.diagnose(err))
	}
	if st.tpgid <= 1 || st.state == "Z" {
		return nil, nil
	}
	return &remoteexec.Foreground{ProcessGroupID: st.tpgid, InputWaiting: s.waitsForInput(ctx, t.pid, st.tpgid)}, nil
}

// waitsForInput reports whether it is proven that a thread of the group's
// leader is blocked reading the terminal (TT-14, TT-15). What cannot be read
// proves nothing.
func (s *session) waitsForInput(ctx context.Context, leader, group int) bool {
	dir := "/proc/" + strconv.Itoa(group)
	var tty, own string
	var tasks wire.ListDirResponse
	var arch string
	each(4, func(i int) {
		switch i {
		case 0:
			tty = s.linkTarget(ctx, "/proc/"+strconv.Itoa(leader)+"/fd/0")
		case 1:
			own = s.linkTarget(ctx, dir+"/fd/0")
		case 2:
			s.use(ctx, func(c *wire.Client) error {
				return c.Call(ctx, wire.MethodListDir, wire.ListDirRequest{Path: dir + "/task", Depth: 1}, &tasks)
			})
		case 3:
			arch, _ = s.procFile(ctx, "/proc/sys/kernel/arch")
		}
	})
	if own == "" || own != tty || !strings.HasPrefix(own, "/dev/") {
		return false
	}
	waits := make([]bool, len(tasks.Entries))
	each(len(waits), func(i int) {
		call, err := s.procFile(ctx, dir+"/task/"+tasks.Entries[i].Name+"/syscall")
		waits[i] = err == nil && readsTerminal(strings.Fields(call), strings.TrimSpace(arch))
	})
	for _, w := range waits {
		if w {
			return true
		}
	}
	return false
}

// linkTarget gives where a link of /proc leads, "" if that cannot be told.
func (s *session) linkTarget(ctx context.Context, p string) string {
	e, err := (&Driver{s}).statOne(ctx, p)
	if err != nil || e.SymlinkTarget == nil || e.Dangles() {
		return ""
	}
	return *e.SymlinkTarget
}

// readsTerminal looks at a system call under way: read on descriptor 0, or a
// select that can only be about reading descriptor 0. The sets of other calls
// lie in the memory of the process, which the file service cannot read.
func readsTerminal(call []string, arch string) bool {
	if len(call) < 5 {
		return false
	}
	read, selects := "0", []string{"23", "270"}
	switch arch {
	case "aarch64":
		read, selects = "63", []string{"72"}
	case "", "x86_64":
	default:
		return false
	}
	if call[0] == read {
		return call[1] == "0x0"
	}
	for _, n := range selects {
		if call[0] == n {
			return call[1] == "0x1" && call[2] != "0x0" && call[3] == "0x0" && call[4] == "0x0"
		}
	}
	return false
}
