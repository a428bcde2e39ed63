package dbserver

import "syscall"

// childOf returns the attributes of a server that a signal to the terminal of this process
// does not reach, and that gets the signal orphaned if this process ends without stopping it.
func childOf(as *syscall.Credential, orphaned syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setpgid: true, Pdeathsig: orphaned}
}
