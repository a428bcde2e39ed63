package dbserver

import "syscall"

// childOf are the attributes of a server that a signal to our terminal does not
// reach, and that ends by a signal when we end without stopping it.
func childOf(as *syscall.Credential, orphaned syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Setpgid: true, Pdeathsig: orphaned}
}
