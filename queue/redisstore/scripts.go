package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/stintgo/stint/queue/internal/dbrows"
)

// fullSource begins all scripts that write.
//
//go:embed full.lua
var fullSource string

//go:embed lead.lua
var leadSource string

//go:embed renew.lua
var renewSource string

//go:embed touch.lua
var touchSource string

//go:embed apply.lua
var applySource string

//go:embed readkeys.lua
var readKeysSource string

//go:embed putleases.lua
var putLeasesSource string

// scripts are what the store has the server execute as one operation.
type scripts struct{ lead, renew, touch, apply, readKeys, putLeases *redis.Script }

func newScripts() scripts {
	writes := func(source string) *redis.Script { return redis.NewScript(fullSource + source) }
	return scripts{
		writes(leadSource), writes(renewSource), writes(touchSource),
		writes(applySource), redis.NewScript(readKeysSource), writes(putLeasesSource),
	}
}

// run executes a script whose answer is a list, and waits for replicas if there must be
// some that have its changes.
func (r *rows) run(ctx context.Context, replicas int, s *redis.Script, keys []string, args ...any) ([]any, error) {
	return interruptible(ctx, r, func() ([]any, error) {
		if replicas == 0 {
			return s.Run(ctx, r.client, keys, args...).Slice()
		}
		c, err := r.client.primary(ctx, r.leader)
		if err != nil {
			return nil, err
		}
		answer, err := confirmed(ctx, c, replicas, s.EvalSha, keys, args)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			answer, err = confirmed(ctx, c, replicas, s.Eval, keys, args)
		}
		return answer, err
	})
}

// eval is a method of [redis.Script].
type eval func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

// confirmed executes a script, and returns when a number of replicas have received its
// changes. WAIT has to be on the connection of the script.
func confirmed(
	ctx context.Context, c *redis.Client, replicas int, do eval, keys []string, args []any,
) ([]any, error) {
	both := c.Pipeline()
	answer, received := do(ctx, both, keys, args...), both.Do(ctx, "WAIT", replicas, replicasWithin.Milliseconds())
	_, err := both.Exec(ctx)
	if cause := answer.Err(); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, err
	}
	n, err := received.Int()
	if err != nil {
		return nil, err
	}
	if n < replicas {
		return nil, fmt.Errorf("%d of %d replicas have received a change within %s: start the others, or see INFO "+
			"replication", n, replicas, replicasWithin)
	}
	return answer.Slice()
}

// errNothing says that the server has no leader any more.
var errNothing = fmt.Errorf("%w: it has nothing of the store any more; it was started without its data, "+
	"or the keys were removed", dbrows.ErrLost)

// write executes a script that writes only for the leader of an epoch.
func (r *rows) write(
	ctx context.Context, replicas int, s *redis.Script, epoch uint32, keys []string, args ...any,
) error {
	answer, err := r.run(ctx, replicas, s, keys, args...)
	if err != nil {
		return err
	}
	if len(answer) < 3 { // not epoch, id and batch
		r.full.Store(len(answer) > 0)
		return nil
	}
	words := texts(answer)
	if words[0] == "" {
		return errNothing
	}
	t, err := newTerm(words[0], words[2])
	switch {
	case err != nil:
		return err
	case t.Epoch < epoch:
		return fmt.Errorf("%w: its last leader was the one of epoch %d, and this process leads in epoch %d",
			dbrows.ErrLost, t.Epoch, epoch)
	case t.Epoch > epoch || words[1] != r.id:
		return dbrows.ErrFenced
	default:
		return errors.New("its last batch is " + words[2])
	}
}
