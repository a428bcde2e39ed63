package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
)

// fanOut makes a call at several groups.
type fanOut struct {
	table  *Table
	stores []queue.Store // by group
	silent []atomic.Bool // by group: it did not answer the last call of gather
}

// partWithin limits a part of a call that does not need all groups, so that a group without a leader does
// not delay the others for long.
const partWithin = 3 * time.Second

// silentWithin is partWithin of lists, for a group that did not answer the last one.
const silentWithin = 500 * time.Millisecond

// each calls a function for some groups at once, and returns when all calls have.
func (f *fanOut) each(groups []int, call func(group int) error) error {
	if len(groups) == 1 {
		return call(groups[0])
	}
	errs := make([]error, len(groups))
	var calls sync.WaitGroup
	for i, g := range groups {
		calls.Go(func() {
			if errs[i] = call(g); errs[i] != nil {
				errs[i] = fmt.Errorf("group %s: %w", f.table.Name(g), errs[i])
			}
		})
	}
	calls.Wait()
	return errors.Join(errs...)
}

// search is each for calls that look for something: when one has found all of it, the others are
// ended, and their errors do not count.
func (f *fanOut) search(
	ctx context.Context, groups []int, look func(ctx context.Context, group int) (all bool, err error),
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var found atomic.Bool
	err := f.each(groups, func(g int) error {
		all, err := look(ctx, g)
		if all {
			found.Store(true)
			stop()
		}
		return err
	})
	if found.Load() {
		return nil
	}
	return err
}

// errSilent is the error of a group that has not answered a part of a call in time.
var errSilent = fmt.Errorf("%w: it does not answer in time", queue.ErrUnavailable)

// partOf returns the context for a part of a call: limited, if the call has several. The error of a
// store that a context has ended wraps the cause.
func partOf(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	if parts == 1 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, partWithin, errSilent)
}

// gather calls a function for all groups at once, and returns a [queue.PartialError] if some do not
// answer within 3 s; for a group that did not answer the last such call, within 0.5 s, because lists
// are read page by page.
func (f *fanOut) gather(ctx context.Context, call func(ctx context.Context, group int) error) error {
	errs := make([]error, len(f.stores))
	err := f.each(f.all(), func(g int) error {
		part, stop := partOf(ctx, len(f.stores))
		defer stop()
		if f.silent[g].Load() {
			part, stop = context.WithTimeoutCause(part, silentWithin, errSilent)
			defer stop()
		}
		errs[g] = call(part, g)
		if ctx.Err() == nil {
			f.silent[g].Store(errs[g] != nil)
		}
		return errs[g]
	})
	if err == nil || ctx.Err() != nil || !slices.Contains(errs, nil) {
		return err
	}
	var partial queue.PartialError
	for g, why := range errs {
		switch {
		case why == nil:
		case errors.Is(why, queue.ErrUnavailable):
			reason := strings.ReplaceAll(why.Error(), queue.ErrUnavailable.Error()+": ", "") // it is that of the PartialError
			partial.Missing = append(partial.Missing, queue.MissingGroup{Name: f.table.Name(g), Reason: reason})
		default:
			return err
		}
	}
	return &partial
}

// all returns all groups, the default group first.
func (f *fanOut) all() []int {
	groups := []int{f.table.Default()}
	for g := range f.stores {
		if g != f.table.Default() {
			groups = append(groups, g)
		}
	}
	return groups
}
