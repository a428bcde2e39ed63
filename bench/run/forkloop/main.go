// Command forkloop starts one program many times and waits for it, and does
// nothing else: no input, no output, no bookkeeping. It is the limit of what a
// runner of commands can reach on a machine.
//
//	forkloop JOBS LOOPS PROGRAM
//
// LOOPS loops share the jobs. syscall.ForkExec is vfork and exec on Linux.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "forkloop:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: forkloop JOBS LOOPS PROGRAM")
	}
	jobs, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	loops, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	errs := make([]error, loops)
	var all sync.WaitGroup
	for i := range loops {
		all.Go(func() { errs[i] = loop((jobs+i)/loops, args[2]) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func loop(jobs int, program string) error {
	attr := &syscall.ProcAttr{Files: []uintptr{0, 1, 2}}
	for range jobs {
		pid, err := syscall.ForkExec(program, []string{program}, attr)
		if err != nil {
			return err
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		if status.ExitStatus() != 0 {
			return fmt.Errorf("%s ended with status %d", program, status.ExitStatus())
		}
	}
	return nil
}
