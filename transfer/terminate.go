package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// Terminate deletes the unfinished upload of a task at its server. It is for tasks that were
// cancelled while they were queued, or whose worker died, and for dead ones that will not be
// retried: a worker deletes an upload that is cancelled while it runs. Without
// it, the server keeps what it has until the upload expires. cfg is that of [Handle]; the
// environment must have the variables of [Upload.HeaderEnv], and [Upload.TokenFile] be readable.
//
// It returns nil if there is nothing to delete, or if the server does not delete uploads. A
// later retry of the task sends the whole file. Errors: [queue.ErrState] if the task is not
// cancelled or dead, [queue.ErrInvalid], and those of the requests.
func Terminate(ctx context.Context, task queue.Task, cfg Config) error {
	if task.Kind != string(Kind) {
		return fmt.Errorf("%w: task %s is of kind %q and not an upload", queue.ErrInvalid, task.ID, task.Kind)
	}
	if task.State != queue.Cancelled && task.State != queue.Dead {
		return fmt.Errorf("%w: upload %s is %s; cancel it before its data is deleted", queue.ErrState, task.ID, task.State)
	}
	if len(task.Checkpoint) == 0 {
		return nil
	}
	var u Upload
	if err := json.Unmarshal(task.Payload, &u); err != nil {
		return fmt.Errorf("%w: payload of upload %s: %w", queue.ErrInvalid, task.ID, err)
	}
	p, err := decodePlan(task.Checkpoint)
	if err != nil {
		return err
	}
	server, err := newServer(cfg.withDefaults(), &u)
	if err != nil {
		return err
	}
	can, err := server.Abilities(ctx)
	if err != nil || !can.Abort {
		return err
	}
	return abort(ctx, server, p)
}

// abort deletes the uploads of all lanes of a plan.
func abort(ctx context.Context, server protocol.Server, p *plan) error {
	var errs []error
	seen := make(map[string]bool)
	for _, at := range p.locations() {
		if at != nil && !seen[at.String()] {
			seen[at.String()] = true
			errs = append(errs, server.Abort(ctx, at))
		}
	}
	return errors.Join(errs...)
}

// abandon deletes the uploads of the attempt's plan at the server, if it can. An error is
// only logged: servers also delete uploads that expire. It does not depend on the end of ctx.
func (a *attempt) abandon(ctx context.Context) {
	p := a.plan.Load()
	if p == nil || !a.can.Abort {
		return
	}
	const patience = 10 * time.Second
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	if err := abort(ctx, a.server, p); err != nil {
		a.cfg.Logger.Warn("an unfinished upload stays at the server, which may delete it later", slog.Any("task", a.job.ID),
			slog.Any("error", err))
	}
}
