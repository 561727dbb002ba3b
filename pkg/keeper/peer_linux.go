package keeper

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// OwnPeer reports whether the other end of a socket is a process of this user.
func OwnPeer(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		own = err == nil && int(cred.Uid) == os.Geteuid()
	})
	return own
}
