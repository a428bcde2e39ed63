//go:build unix

package filestore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// The lease of the tasks of runStopped, and for how long the test stops the process.
const (
	stoppedLease = 3 * time.Second
	stoppedFor   = 2 * stoppedLease
)

// runStopped runs a task that prints when it begins, and after a line of standard input, or
// when it loses its lease, how it ends.
func runStopped(dir string) {
	s, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		panic(err)
	}
	q := queue.New(s, queue.Config{Lease: stoppedLease})
	ctx, end := context.WithCancel(context.Background())
	kind := queue.Kind[string]("long")
	kind.Handle(q, func(ctx context.Context, _ *queue.Job[string]) error {
		defer end()
		<-time.After(stoppedLease / 3) // the process has sent heartbeats
		fmt.Println("begun")
		goOn := make(chan struct{})
		go func() {
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			<-time.After(stoppedLease) // heartbeats and the end of a lease come before that
			close(goOn)
		}()
		select {
		case <-goOn:
			fmt.Println("done")
			return nil
		case <-ctx.Done():
			fmt.Println("ended:", context.Cause(ctx))
			return context.Cause(ctx)
		}
	})
	if _, err := kind.Submit(ctx, q, "", queue.Options{}); err != nil {
		panic(err)
	}
	_ = q.Run(ctx, stint.New(1, stint.Config{}))
	if err := s.Close(); err != nil {
		panic(err)
	}
}

// A process that is stopped for longer than the leases of its tasks, as on a machine that is
// paused, extends them when it continues: its tasks go on.
func TestC8_StoppedForLongerThanALease(t *testing.T) {
	cmd := process(t, doStop, t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("the process prints %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
	next("begun")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(stoppedFor)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in); err != nil {
		t.Fatal(err)
	}
	next("done")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
