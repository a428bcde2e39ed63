//go:build !linux

package dbserver

import "syscall"

// childOf returns the attributes of a server that a signal to the terminal of this process
// does not reach.
func childOf(as *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setpgid: true}
}
