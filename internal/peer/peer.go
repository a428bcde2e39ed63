// Package peer identifies the user at the other end of a Unix socket, so that a client
// sends nothing to a listener that another user has put in the place of its server, and a
// server does nothing for clients of other users.
//
// On Linux the kernel reports the user of a connection (SO_PEERCRED). On other systems
// [Check] accepts all connections: there the modes of the socket and of its directory
// determine which users can connect, and which can put a listener there.
package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
)

// ForeignError is the error of a connection whose other end belongs to a user that is
// not trusted.
type ForeignError struct {
	UID  int // of the other end
	Self int // of this process
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the process at the other end of the socket runs as user %d, and this one runs as user %d", e.UID,
		e.Self)
}

// Check returns a [*ForeignError] if the other end of a Unix socket belongs to another
// user than that of this process, root, or one of users. It returns nil for other
// connections, and on systems that do not report the user. A connection that wraps
// another one must have its SyscallConn method, or NetConn as in package tls; otherwise
// it is refused. Check neither reads nor writes.
func Check(c net.Conn, users []int) error {
	if _, ok := c.LocalAddr().(*net.UnixAddr); !ok {
		return nil
	}
	if outer, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = outer.NetConn()
	}
	uid, err := userOf(c)
	switch self := os.Geteuid(); {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return fmt.Errorf("the user at the other end of the socket: %w", err)
	case !trusted(uid, self, users):
		return &ForeignError{UID: uid, Self: self}
	}
	return nil
}

// trusted reports whether a process of the user self accepts one of the user uid.
func trusted(uid, self int, users []int) bool {
	const root = 0 // has access to everything anyway
	return uid == self || uid == root || slices.Contains(users, uid)
}
