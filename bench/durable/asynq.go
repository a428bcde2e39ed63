package durable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stintgo/stint/internal/dbserver"
)

const defaultQueue = "default"

// asynqQueue is asynq on a Redis of its own.
type asynqQueue struct {
	turn      *turn
	redis     asynq.RedisClientOpt
	check     time.Duration // how often it looks for tasks when there were none
	client    *asynq.Client
	inspector *asynq.Inspector
}

// tunedCheck is a hundredth of asynq's default, which would be most of the time of
// a short turn.
const tunedCheck = 10 * time.Millisecond

func openAsynqAlways(t *turn) (keeper, error) { return openAsynq(t, dbserver.Always, tunedCheck) }

func openAsynqEverySec(t *turn) (keeper, error) { return openAsynq(t, dbserver.EverySec, tunedCheck) }

func openAsynqDefault(t *turn) (keeper, error) { return openAsynq(t, dbserver.EverySec, 0) }

func openAsynq(t *turn, sync dbserver.Sync, check time.Duration) (keeper, error) {
	dir := filepath.Join(t.dir, "redis")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	address, stop, err := dbserver.Redis(dir, sync)
	if err != nil {
		return nil, err
	}
	t.Cleanup(stop)
	redis := asynq.RedisClientOpt{Addr: address, PoolSize: callers + workers}
	a := &asynqQueue{t, redis, check, asynq.NewClient(redis), asynq.NewInspector(redis)}
	t.Cleanup(func() { _ = a.inspector.Close() })
	t.Cleanup(func() { _ = a.client.Close() })
	return a, nil
}

func (a *asynqQueue) submit(stamp int64) error {
	_, err := a.client.EnqueueContext(context.Background(), asynq.NewTask(kind, newPayload(stamp)))
	return err
}

// asynq has no submitBatch: each task is a round trip.
func (a *asynqQueue) submitBatch(int) error { return errors.ErrUnsupported }

func (a *asynqQueue) work(handled func(stamp int64)) error {
	s := asynq.NewServer(a.redis, asynq.Config{
		Concurrency: workers, LogLevel: asynq.FatalLevel, TaskCheckInterval: a.check,
	})
	a.turn.Cleanup(s.Shutdown)
	return s.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handled(stampOf(t.Payload()))
		return nil
	}))
}

func (a *asynqQueue) settled() error { return untilNone(a.unsettled) }

func (a *asynqQueue) unsettled() (int, error) {
	info, err := a.inspector.GetQueueInfo(defaultQueue)
	if err != nil {
		return 0, err
	}
	return info.Size, nil // what has succeeded is deleted at once
}

// untilNone returns when a system says that it keeps no more tasks.
func untilNone(unsettled func() (int, error)) error {
	for {
		n, err := unsettled()
		if err != nil || n == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
