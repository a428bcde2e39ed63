//go:build linux

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// kind is the kind of all tasks.
const kind = "work"

// plan is the payload of a task: what its handler does.
type plan struct {
	Work    time.Duration // how long it runs
	Snoozes int           // number of snoozes before all else
	Fails   int           // number of failures
	Dies    bool          // at the first failure
	Holds   bool          // until the release file exists
}

// ends returns the state in which a task with this plan ends.
func (p plan) ends() queue.State {
	if p.Dies || p.Fails >= attempts {
		return queue.Dead
	}
	return queue.Succeeded
}

// The outcomes that handlers log.
const (
	succeeded   = "succeeded"
	failed      = "failed"
	snoozed     = "snoozed"
	interrupted = "interrupted"
)

var errPlanned = errors.New("so it was planned")

// handler executes plans, and logs when it begins and ends.
type handler struct {
	log     *log
	release string
}

func (h handler) work(ctx context.Context, j *queue.Job[plan]) error {
	h.log.write(entry{What: begins, Task: j.ID, Token: j.Lease.Token})
	err := h.do(ctx, j)
	outcome := succeeded
	_, snoozes := queue.SnoozeDelay(err)
	switch {
	case err != nil && ctx.Err() != nil: // so its error does not count
		outcome = interrupted
	case snoozes:
		outcome = snoozed
	case err != nil:
		outcome = failed
	}
	h.log.write(entry{What: ends, Task: j.ID, Token: j.Lease.Token, Outcome: outcome})
	return err
}

func (h handler) do(ctx context.Context, j *queue.Job[plan]) error {
	if err := pause(ctx, j.Args.Work); err != nil {
		return err
	}
	for j.Args.Holds && !exists(h.release) {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	slept := 0
	for _, s := range j.Steps {
		if s.On == queue.OnSnooze {
			slept++
		}
	}
	switch {
	case slept < j.Args.Snoozes:
		return queue.Snooze(10 * time.Millisecond)
	case j.Args.Dies:
		return retry.Permanent(errPlanned)
	case j.Failures < j.Args.Fails:
		return fmt.Errorf("failure %d: %w", j.Failures+1, errPlanned)
	}
	return nil
}

// pause waits for d, or returns the cause of the context's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func listen(socket string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), "unix", socket)
}
