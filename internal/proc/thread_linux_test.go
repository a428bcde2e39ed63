package proc_test

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stintgo/stint/internal/proc"
)

// A watched process continues when the thread ends that started it. (One that is not
// watched is killed, unless that thread was the first of the program, which never ends.)
func TestWatchedOutlivesItsThread(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for range 4 {
		all.Go(func() {
			started := make(chan *proc.Process)
			go func() { // it ends locked to its thread, and so ends the thread
				runtime.LockOSThread()
				p, err := proc.Start(&proc.Spec{
					Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 0.3"}, Watched: true,
					Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
				})
				if err != nil {
					t.Error(err)
				}
				started <- p
			}()
			if p := <-started; p != nil {
				if status := p.Wait(nil, nil); status != (proc.Status{}) {
					t.Errorf("it ended with %+v", status)
				}
			}
		})
	}
}
