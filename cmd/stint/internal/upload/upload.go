// Package upload implements stint upload: it adds uploads to the tasks in a directory, and
// shows them until they are finished. The process that has locked the directory sends
// them: the stint upload that was started first, or a stint serve.
package upload

// The files:
//
//   - upload.go: Config and Run: adding, and the change from client to server and back
//   - follow.go: follows the added uploads until they are finished
//   - show.go: bars, lines and JSON
//   - table.go: the table of stint transfers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// Config configures uploads.
type Config struct {
	Serve   serve.Config  // of the server in Serve.Dir, if this process has to run it
	Remote  remote.Config // to call the server
	Options queue.Options
	Uploads []transfer.Upload
	// Unsent are the errors of files and directories that cannot be among Uploads. They count as failed.
	Unsent []error
	// Own says that only this process can work on the uploads, because they need its standard
	// input or the AWS keys in its environment.
	Own bool
	// Again makes files that have been sent before be sent again.
	Again bool
	Show  Show
}

// Sum is how uploads have ended.
type Sum struct {
	Sent, Skipped, Failed, Cancelled int
	Bytes                            int64 // of those that were sent
	Left                             int   // that are not finished, because ctx ended
}

// errBusy is the error of a Run whose directory another process uses.
var errBusy = errors.New("another process works on the uploads in this directory, and cannot use the standard input " +
	"or the AWS keys of this one: choose another directory with --dir, or a --profile of keys")

// Run adds uploads that are not known yet, and follows all until they are finished or ctx
// ends. An upload is known if the same version of the same file was added for the same
// server before: it continues, or is skipped if it has succeeded. If force ends, Run waits for
// nothing, and returns [serve.ErrForced] if this process is the server.
func Run(ctx, force context.Context, cfg Config) (sum Sum, err error) {
	defer func() { cfg.Show.End(sum, err) }()
	run := &follower{cfg: &cfg, mine: make(map[queue.ID]*queue.NewTask), failed: make(map[queue.ID]*int)}
	for {
		sum, err = run.once(ctx, force)
		// The process that has served has ended: another one, perhaps this one, goes on.
		if err == nil || !errors.Is(err, errServerGone) || ctx.Err() != nil {
			return sum, err
		}
		run.unanswered()
	}
}

// silenceMax is how long the process that has locked the directory may give no answer, as while it
// starts or ends, until that is shown.
const silenceMax = 5 * time.Second

// unanswered shows once that another process has locked the directory and does not answer.
func (f *follower) unanswered() {
	switch now := clock.Now(); {
	case f.busy == nil:
	case f.since.IsZero():
		f.since = now
	case !f.noted && now.Sub(f.since) >= silenceMax:
		f.noted = true
		f.note("waits for the process that has %s open and does not answer: %v", f.cfg.Serve.Dir, f.busy)
	}
}

// once serves the directory, or finds the server of it, and follows the uploads there.
func (f *follower) once(ctx, force context.Context) (Sum, error) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg := f.cfg.Serve
	cfg.Ready = func([]string) { close(ready) }
	go func() { ended <- serve.Run(serving, force, cfg) }()
	own := true
	f.busy = nil
	select {
	case <-ready:
	case err := <-ended:
		if !errors.Is(err, syscall.EAGAIN) {
			return Sum{}, err
		}
		own, f.busy = false, err
		if f.cfg.Own {
			return Sum{}, errBusy
		}
	}
	server, err := remote.Open(cfg.Dir, f.cfg.Remote)
	if err != nil {
		if own {
			stop()
			err = errors.Join(err, <-ended)
		}
		return Sum{}, err
	}
	var sum Sum
	if own {
		err = remember(serving, server)
	}
	if err == nil {
		sum, err = f.follow(ctx, server)
	}
	err = errors.Join(err, server.Close())
	if own {
		stop()
		err = cmp.Or(<-ended, err)
	}
	return sum, err
}

// remember makes the queue keep the tasks of very many finished uploads, unless its retention has been set.
func remember(ctx context.Context, server *remote.Server) error {
	set, err := server.Settings(ctx)
	if err != nil {
		return err
	}
	of := set[queue.DefaultQueue]
	for _, layer := range []queue.Layer{of.Program, of.Operator, set[""].Program, set[""].Operator} {
		if _, ok := layer.From[queue.FieldKeep]; ok {
			return nil
		}
	}
	return server.Configure(ctx, queue.DefaultQueue, queue.Settings{Keep: queue.Retention{Count: keepCount}})
}

// keepCount is the number of finished uploads that are remembered for a day: a call that is given
// again skips them. By default a queue remembers fewer.
const keepCount = 10_000_000

// errServerGone is the error of a call to a server that has ended.
var errServerGone = errors.New("the server has ended")

// gone marks the errors of calls that no server has answered.
func gone(err error) error {
	_, foreign := errors.AsType[*peer.ForeignError](err)
	_, network := errors.AsType[*net.OpError](err)
	if !foreign && (network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("%w: %w", errServerGone, err)
	}
	return err
}

// add submits the uploads, or finds the tasks of those that are known. Files that cannot be sent, whatever the flags
// say, fail alone.
func (f *follower) add(ctx context.Context, server *remote.Server) error {
	var tasks []queue.NewTask
	unsent := slices.Clone(f.cfg.Unsent)
	for _, u := range f.cfg.Uploads {
		task, err := f.prepare(server, u)
		_, ofFile := errors.AsType[*fs.PathError](err)
		switch {
		case err == nil:
			tasks = append(tasks, task)
		case ofFile || !utf8.ValidString(u.Path):
			unsent = append(unsent, err)
		default:
			return err
		}
	}
	if err := f.submit(ctx, server, tasks); err != nil || len(unsent) == 0 {
		return err
	}
	f.sum.Failed += len(unsent)
	first := strings.TrimPrefix(unsent[0].Error(), queue.ErrInvalid.Error()+": ")
	f.note("files and directories that cannot be sent: %d, the first of them: %s", len(unsent), first)
	return nil
}

// prepare makes the task of an upload.
func (f *follower) prepare(server *remote.Server, u transfer.Upload) (_ queue.NewTask, err error) {
	o := f.cfg.Options
	if u.Path != transfer.Input {
		if o.Unique, err = uniqueName(&u); err != nil {
			return queue.NewTask{}, err
		}
	}
	return transfer.Prepare(server.Queue, u, o)
}

// submit submits tasks, and follows them or the known ones of the same names.
func (f *follower) submit(ctx context.Context, server *remote.Server, tasks []queue.NewTask) error {
	for len(tasks) > 0 {
		some := tasks[:min(len(tasks), queue.MaxSubmit)]
		receipts, err := server.Submit(ctx, some...)
		if err != nil {
			return err
		}
		for i, r := range receipts {
			f.mine[r.ID] = nil
			if r.Existing {
				f.mine[r.ID] = &some[i]
			}
		}
		tasks = tasks[len(some):]
	}
	return nil
}

// credentials returns a text for what gives access to the server: where the worker of an upload
// finds its credentials, not what they are.
func credentials(payload []byte) (string, error) {
	var u transfer.Upload
	if err := json.Unmarshal(payload, &u); err != nil {
		return "", err
	}
	// A map is printed in the order of its keys.
	text := fmt.Appendf(nil, "%q %q %q", u.HeaderEnv, u.Profile, u.Region)
	if u.TokenFile != "" {
		text = fmt.Appendf(text, " %q", u.TokenFile)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// uniqueName is the name of the task for a version of a file and a server.
func uniqueName(u *transfer.Upload) (string, error) {
	info, err := os.Stat(u.Path)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(u.Path)
	if err != nil {
		return "", err
	}
	what := fmt.Appendf(nil, "%q %q %q %d %d", path, u.To, u.Name, info.Size(), info.ModTime().UnixNano())
	if u.Endpoint != "" {
		what = fmt.Appendf(what, " %q", u.Endpoint)
	}
	sum := sha256.Sum256(what)
	return "upload " + hex.EncodeToString(sum[:16]), nil
}
