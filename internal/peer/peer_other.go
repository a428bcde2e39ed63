//go:build !linux

package peer

import (
	"errors"
	"net"
)

// userOf reports that the user is unknown on this system.
func userOf(net.Conn) (uid int, err error) { return 0, errors.ErrUnsupported }
