//go:build !linux

package dbserver

import "syscall"

// childOf are the attributes of a server that a signal to our terminal does not
// reach.
func childOf(as *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setpgid: true}
}
