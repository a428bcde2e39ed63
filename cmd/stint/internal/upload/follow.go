package upload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// follower follows the uploads of one Run.
type follower struct {
	cfg            *Config
	added, revived bool
	// mine are the uploads that are not finished, as far as this process knows. The value is the
	// task that was to be added, if the upload was known before; nil otherwise.
	mine   map[queue.ID]*queue.NewTask
	failed map[queue.ID]*int // that have ended without success, with their count in sum; they may be retried
	sum    Sum
	paused bool // all unfinished uploads are paused, and the note about it was shown

	busy  error     // why this process does not serve the directory, or nil
	since time.Time // when calls to the process that serves it began to fail; zero while it answers
	noted bool      // a note about these failures was shown
}

// every is the interval between two polls. With very many uploads a poll takes longer, and
// the pause after it is then as long as the poll.
const every = 200 * time.Millisecond

// follow adds the uploads, if it has not done so, and polls them until all are finished or ctx
// ends, which is not an error.
func (f *follower) follow(ctx context.Context, server *remote.Server) (Sum, error) {
	err := f.untilFinished(ctx, server)
	if ctx.Err() != nil {
		err = nil
	}
	f.sum.Left = len(f.mine)
	if !f.added {
		f.sum.Left = len(f.cfg.Uploads)
	}
	return f.sum, gone(err)
}

func (f *follower) note(format string, args ...any) {
	f.cfg.Show.Note(view.Plain(fmt.Sprintf(format, args...)))
}

func (f *follower) untilFinished(ctx context.Context, server *remote.Server) error {
	if !f.added {
		if err := f.add(ctx, server); err != nil {
			return err
		}
		f.added = true
	}
	if !f.revived {
		if err := f.revive(ctx, server); err != nil {
			return err
		}
		f.revived = true
	}
	for {
		began := clock.Now()
		if err := f.look(ctx, server); err != nil {
			return err
		}
		f.since, f.noted = time.Time{}, false
		if len(f.mine) == 0 {
			if err := f.retried(ctx, server); err != nil || len(f.mine) == 0 {
				return err
			}
		}
		select {
		case <-time.After(max(every, clock.Now().Sub(began))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// revive decides what happens to the known uploads: those that have succeeded are skipped, or added anew with
// Config.Again, and dead and cancelled ones are tried again. One whose task has other credentials than this
// call gives is added anew, because a retry would be refused as before, and so is one that has been forgotten
// since its receipt.
func (f *follower) revive(ctx context.Context, server *remote.Server) error {
	var known []queue.ID
	anew := make(map[queue.ID]string) // with what is appended to the unique name
	for id, again := range f.mine {
		if again != nil {
			known = append(known, id)
		}
	}
	found := make(map[queue.ID]bool)
	err := f.each(ctx, server, known, func(task *queue.Task) error {
		found[task.ID] = true
		switch task.State {
		case queue.Succeeded:
			if f.cfg.Again {
				anew[task.ID] = afterText + task.ID.String()
				return nil
			}
			f.sum.Skipped++
			delete(f.mine, task.ID)
		case queue.Dead, queue.Cancelled:
			before, err := credentials(task.Payload)
			now, err2 := credentials(f.mine[task.ID].Payload)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			if before != now {
				anew[task.ID] = " " + now
				return nil
			}
			if err := server.Retry(ctx, task.ID); !errors.Is(err, queue.ErrState) {
				return err
			} // another call has retried it meanwhile
		default: // it continues
		}
		return nil
	})
	if errors.Is(err, errForgotten) {
		for _, id := range known {
			if !found[id] {
				anew[id] = ""
			}
		}
		err = nil
	}
	if err != nil || len(anew) == 0 {
		return err
	}
	var tasks []queue.NewTask
	for id, suffix := range anew {
		task := *f.mine[id]
		if suffix != "" {
			task.Unique, _, _ = strings.Cut(task.Unique, afterText)
			task.Unique += suffix
		}
		tasks = append(tasks, task)
	}
	if err := f.submit(ctx, server, tasks); err != nil {
		return err
	}
	for id := range anew {
		delete(f.mine, id)
	}
	return f.revive(ctx, server) // an earlier call may have added these anew
}

// afterText is in the unique name of a task that sends a file again, before the ID of the last one that has sent it.
const afterText = " after "

// look reads the unfinished uploads, and then those of this call that are finished.
func (f *follower) look(ctx context.Context, server *remote.Server) error {
	var v View
	unfinished := make(map[queue.ID]bool)
	states := []queue.State{queue.Running, queue.Waiting, queue.Scheduled, queue.Held, queue.Paused}
	paused := 0
	for t, err := range transfer.Find(ctx, server.Queue, queue.Filter{States: states}) {
		if err != nil {
			return err
		}
		if _, mine := f.mine[t.ID]; !mine {
			v.Others++
			continue
		}
		unfinished[t.ID] = true
		v.Size += t.Size
		v.Done += t.Done
		if t.Size == 0 {
			v.Unsized += t.Done
		}
		v.Rate += t.Rate
		switch t.State {
		case queue.Running:
			v.Running = append(v.Running, t)
		case queue.Paused:
			if t.Path != transfer.Input {
				paused++
				break
			}
			began, err := f.began(ctx, server, t.ID)
			if err != nil {
				return err
			}
			if !began {
				paused++
				break
			}
			f.note("%s was paused, and standard input cannot be read again: it is cancelled", t.Name)
			if err := server.Cancel(ctx, t.ID); err != nil && !errors.Is(err, queue.ErrState) {
				return err
			}
		default: // it waits
		}
	}
	var ended []queue.ID
	for id := range f.mine {
		if !unfinished[id] {
			ended = append(ended, id)
		}
	}
	finished := func(task *queue.Task) error { return f.finished(ctx, task) }
	if err := f.each(ctx, server, ended, finished); err != nil {
		return err
	}
	if all := paused == len(f.mine) && paused > 0; all != f.paused {
		if f.paused = all; all {
			f.note("all unfinished uploads are paused: stint resume --kind stint.upload --server %s continues them",
				f.cfg.Serve.Dir)
		}
	}
	v.Left, v.Sum = len(f.mine), f.sum
	f.cfg.Show.Progress(v)
	return nil
}

// began reports whether an attempt of an upload has begun.
func (f *follower) began(ctx context.Context, server *remote.Server, id queue.ID) (bool, error) {
	task, err := server.Get(ctx, id)
	return slices.ContainsFunc(task.Steps, func(s queue.Step) bool { return s.On == queue.OnClaim }), err
}

// finished counts and shows an upload that has ended. If it was cancelled while no worker sent it,
// what the server has of it is deleted.
func (f *follower) finished(ctx context.Context, task *queue.Task) error {
	if !task.State.Finished() {
		return nil // it was retried a moment ago
	}
	t, err := transfer.Of(*task)
	if err != nil {
		return err
	}
	delete(f.mine, task.ID)
	if task.State == queue.Succeeded {
		f.sum.Sent++
		f.sum.Bytes += t.Size
	} else {
		count := &f.sum.Failed
		if task.State == queue.Cancelled {
			count = &f.sum.Cancelled
		}
		*count++
		f.failed[task.ID] = count
	}
	f.cfg.Show.Finished(t)
	if task.State == queue.Cancelled {
		ctx, stop := context.WithTimeout(ctx, terminateMax)
		defer stop()
		if err := transfer.Terminate(ctx, *task, f.cfg.Serve.Transfer); err != nil {
			f.note("the server keeps a part of the cancelled %s: %v", t.Name, err)
		}
	}
	return nil
}

// retried follows uploads again that had failed or been cancelled, and have been retried since. An upload
// that has succeeded meanwhile counts as sent.
func (f *follower) retried(ctx context.Context, server *remote.Server) error {
	states := []queue.State{
		queue.Running, queue.Waiting, queue.Scheduled, queue.Held, queue.Paused, queue.Succeeded,
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(f.failed)), idsAtOnce) {
		for task, err := range server.Find(ctx, queue.Filter{IDs: some, States: states}) {
			if err != nil {
				return err
			}
			*f.failed[task.ID]--
			delete(f.failed, task.ID)
			f.mine[task.ID] = nil // the next look counts it if it has ended
		}
	}
	return nil
}

// terminateMax bounds the request that deletes a cancelled upload at its server.
const terminateMax = 10 * time.Second

// idsAtOnce is the number of IDs that one call asks for.
const idsAtOnce = 500

// errForgotten is the error of follower.each if a task does not exist.
var errForgotten = errors.New("an upload was removed while it was followed")

// each calls fn for each task in ids. If some of them do not exist, it returns errForgotten in the end.
func (f *follower) each(
	ctx context.Context, server *remote.Server, ids []queue.ID, fn func(*queue.Task) error,
) error {
	forgotten := false
	for len(ids) > 0 {
		some := ids[:min(len(ids), idsAtOnce)]
		found := 0
		for task, err := range server.Find(ctx, queue.Filter{IDs: some}) {
			if err != nil {
				return err
			}
			found++
			if err := fn(&task); err != nil {
				return err
			}
		}
		forgotten = forgotten || found < len(some)
		ids = ids[len(some):]
	}
	if forgotten {
		return errForgotten
	}
	return nil
}
