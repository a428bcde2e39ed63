package peer

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// userOf returns the effective user ID of the process that has connected, or that
// listens.
func userOf(c net.Conn) (uid int, err error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("a %T does not expose its descriptor", c)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
