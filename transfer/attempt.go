package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// Result is the result of an upload that succeeded; [queue.Result] reads it.
type Result struct {
	URL  string `json:"url"`  // of the file at the server
	Size int64  `json:"size"` // bytes
	// Sent is the number of bytes that the last attempt sent, and Skipped the number that the
	// server had before it.
	Sent    int64 `json:"sent"`
	Skipped int64 `json:"skipped"`
}

// attempt is one attempt of an upload.
type attempt struct {
	cfg    Config
	job    *queue.Job[Upload]
	server protocol.Server
	can    protocol.Abilities
	source *source // nil for Config.Input

	plan    atomic.Pointer[plan] // nil before it is known
	sent    atomic.Int64         // bytes of bodies
	skipped atomic.Int64         // bytes that the server had before
	synced  func() error         // waits until the store has the URLs of the plan; nil if it has them
}

// handler keeps what the attempts of a process share.
type handler struct {
	cfg Config

	mu    sync.Mutex
	known map[string]answer // by endpoint
	input bool              // Config.Input has been read
}

// answer is what a server has announced, and when.
type answer struct {
	protocol.Abilities

	at time.Time
}

// Handle sets the handler of [Kind] for the Runs of q: they upload files. It panics if cfg is
// not valid, and as [queue.Queue.Handle] does.
func Handle(q *queue.Queue, cfg Config) {
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	h := &handler{cfg: cfg.withDefaults(), known: make(map[string]answer)}
	Kind.Handle(q, h.upload)
}

// upload makes one attempt of a task.
func (h *handler) upload(ctx context.Context, job *queue.Job[Upload]) error {
	server, err := newServer(h.cfg, &job.Args)
	if err != nil {
		return retry.Permanent(err)
	}
	a := &attempt{cfg: h.cfg, job: job, server: server}
	if job.Args.Path == Input {
		return a.stream(ctx, h)
	}
	if a.source, err = openSource(job.Args.Path); err != nil {
		return err
	}
	defer a.source.file.Close() //nolint:errcheck // it was only read
	if a.can, err = h.abilities(ctx, a); err != nil {
		return err
	}
	if most := a.can.SizeMax; most > 0 && a.source.at.Size > most {
		return retry.Permanent(fmt.Errorf("%s has %d bytes, and the server takes %d at most; raise its limit, or send a "+
			"smaller file", job.Args.Path, a.source.at.Size, most))
	}
	return a.measured(ctx, a.run)
}

// measured calls run while progress is reported, and saves the checkpoint at its end. An upload
// that no later attempt continues is deleted at the server: a cancelled one, and that of Input.
func (a *attempt) measured(ctx context.Context, run func(context.Context) error) error {
	stop := a.report()
	err := run(ctx)
	stop()
	if err != nil && (a.source == nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), queue.ErrCancelled)) {
		a.abandon(ctx)
	}
	if p := a.plan.Load(); p != nil {
		p.chunks.stop()
		if a.source != nil {
			a.job.Save(p.encode())
		}
	}
	return err
}

// newServer returns the server of an upload. It makes no request.
func newServer(cfg Config, u *Upload) (protocol.Server, error) {
	if err := u.validate(); err != nil {
		return nil, err
	}
	to, err := url.Parse(u.To)
	if err != nil {
		return nil, err
	}
	if to.Scheme != schemeS3 {
		return newTus(cfg, u)
	}
	if cfg.S3 == nil {
		return nil, fmt.Errorf("%w: this worker does not upload to %s: set transfer.Config.S3", queue.ErrInvalid, u.To)
	}
	return cfg.S3(protocol.Target{
		To: to, Name: u.name(), Endpoint: u.Endpoint, Region: u.Region, Profile: u.Profile,
		Transport: cfg.Client.Transport, Stall: cfg.Stall,
	})
}

// abilities asks the server of an upload what it can do, about once a minute.
func (h *handler) abilities(ctx context.Context, a *attempt) (protocol.Abilities, error) {
	const (
		fresh   = time.Minute
		mostAre = 1000
	)
	h.mu.Lock()
	known, ok := h.known[a.job.Args.To]
	h.mu.Unlock()
	if ok && clock.Now().Sub(known.at) < fresh {
		return known.Abilities, nil
	}
	var can protocol.Abilities
	err := a.repeated(ctx, func() (err error) {
		can, err = a.server.Abilities(ctx)
		return err
	})
	if err != nil {
		return can, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) >= mostAre {
		clear(h.known)
	}
	h.known[a.job.Args.To] = answer{Abilities: can, at: clock.Now()}
	return can, nil
}

// run uploads the file, and starts over at most once if the server has lost the upload.
func (a *attempt) run(ctx context.Context) error {
	p, err := a.resumed(ctx)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		a.plan.Store(p)
		at, err := a.uploadPlan(ctx, p)
		if err == nil {
			return a.job.Return(Result{URL: at, Size: p.layout.size, Sent: a.sent.Load(), Skipped: a.skipped.Load()})
		}
		if !first || !startsOver(err) {
			return err
		}
		a.cfg.Logger.Warn("an upload starts over", slog.Any("task", a.job.ID), slog.Any("error", err))
		a.abandon(ctx)
		if p, err = a.fresh(ctx); err != nil {
			return err
		}
		p.group = newGroup() // the server may still have parts of the former one
		a.skipped.Store(0)
	}
}

// fresh returns a plan that sends the whole file.
func (a *attempt) fresh(ctx context.Context) (*plan, error) {
	lanes := a.job.Args.Lanes
	if !a.can.Lanes {
		lanes = 1
	}
	digest := ""
	if a.job.Args.Verify {
		var err error
		if digest, err = a.source.digest(ctx); err != nil {
			return nil, err
		}
	}
	l := newLayout(a.source.at.Size, a.chunkSize(DefaultChunkSize), lanes)
	p := newPlan(l, a.source.at, digest)
	p.group = a.groupOf(p)
	return p, nil
}

// resumed returns the plan of the last attempt if the file is the same as then, and
// otherwise a fresh one. A file that was written to but has the same size is compared with
// the checksums of the chunks that are done. If it cannot be read for that, the error wraps errRead,
// and the upload stays at the server.
func (a *attempt) resumed(ctx context.Context) (*plan, error) {
	if len(a.job.Checkpoint) == 0 {
		return a.fresh(ctx)
	}
	p, err := decodePlan(a.job.Checkpoint)
	if err == nil {
		p.chunks.stop()
		if a.can.Shared {
			p.share()
		}
		a.plan.Store(p) // so that a cancel deletes it at the server
		if p, err = a.compare(ctx, p); err == nil {
			return p, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, errRead) {
		return nil, err // whether it is the same file is not known: the next attempt finds out
	}
	a.cfg.Logger.Warn("an upload starts over", slog.Any("task", a.job.ID), slog.Any("error", err))
	a.abandon(ctx)
	return a.fresh(ctx)
}

// compare returns an error that wraps ErrChanged if the file is not the one of a plan, and one that
// wraps errRead if it cannot be read. It returns the plan, with the present fingerprint of the file
// if the whole content is known to be the same.
func (a *attempt) compare(ctx context.Context, p *plan) (*plan, error) {
	switch {
	case p.file == a.source.at:
		return p, nil
	case p.file.Size != a.source.at.Size:
		return nil, fmt.Errorf("%w: it had %d bytes, and now it has %d", ErrChanged, p.file.Size, a.source.at.Size)
	case p.sha256 != "":
		digest, err := a.source.digest(ctx)
		switch {
		case err != nil:
			return nil, unread(err)
		case digest != p.sha256:
			return nil, ErrChanged
		}
		return p.of(a.source.at), nil
	}
	for i := range p.layout.chunks() {
		state, crc := p.chunks.state(i)
		if state != ChunkDone {
			continue
		}
		now, err := a.source.sum(ctx, p.layout.offset(i), p.layout.offset(i+1), false)
		if err != nil {
			return nil, unread(err)
		}
		if now.crc != crc {
			return nil, fmt.Errorf("%w: chunk %d, which the server has, differs", ErrChanged, i)
		}
	}
	return p, nil
}

// unread returns the error of a comparison whose file could not be read with err. A file that became
// shorter meanwhile has changed.
func unread(err error) error {
	if errors.Is(err, ErrChanged) {
		return err
	}
	return fmt.Errorf("%w: %w", errRead, err)
}

// uploadPlan sends what the server does not have, and returns the URL of the file.
func (a *attempt) uploadPlan(ctx context.Context, p *plan) (string, error) {
	created := p.urls()
	if err := a.eachLane(ctx, p, sender.prepare); err != nil {
		return "", err
	}
	if p.file != a.source.at { // its chunks have been compared
		p = p.of(a.source.at)
		a.plan.Store(p)
	}
	a.job.Save(p.encode())
	if !slices.Equal(created, p.urls()) && (p.layout.chunks() > 1 || a.can.Durable) {
		defer a.sync(ctx)()
	}
	if a.lengthLater(p) {
		if err := a.sendLength(ctx, p); err != nil {
			return "", err
		}
	}
	if err := a.eachLane(ctx, p, sender.send); err != nil {
		return "", err
	}
	if len(p.lanes) == 1 && !a.can.Commit {
		return p.urls()[0], nil
	}
	if a.synced != nil { // a worker that repeats the last request has to know its uploads
		if err := a.synced(); err != nil {
			return "", err
		}
	}
	return a.complete(ctx, p)
}

// sync has the store write the URLs of the uploads while their first chunks are sent. Without
// that a kill of the process would lose all that was sent since. The caller calls end.
func (a *attempt) sync(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	written := make(chan struct{})
	var err error
	go func() {
		defer close(written)
		err = a.job.Sync(ctx)
	}()
	a.synced = func() error {
		<-written
		return err
	}
	return func() {
		cancel()
		<-written
		a.synced = nil
	}
}

// eachLane calls fn for every lane at once, and returns the first error. That error ends the
// context of the others.
func (a *attempt) eachLane(ctx context.Context, p *plan, fn func(sender, context.Context) error) error {
	if len(p.lanes) == 1 {
		return fn(a.sender(p, 0), ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range p.lanes {
		all.Go(func() {
			if err := fn(a.sender(p, i), ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// complete makes one file of all lanes, and returns its URL.
func (a *attempt) complete(ctx context.Context, p *plan) (at string, err error) {
	if err := a.source.unchanged(); err != nil {
		return "", fmt.Errorf("%w: %w", errRead, err)
	}
	err = a.repeated(ctx, func() (err error) {
		at, err = a.server.Complete(ctx, a.file(p), p.locations())
		return err
	})
	return at, err
}

// lengthLater reports whether a file is created without its length. An empty file whose length is known is complete
// when it is created, and a creation whose answer is lost would make two files.
func (a *attempt) lengthLater(p *plan) bool {
	return p.layout.size == 0 && a.can.Deferred && !a.can.Commit
}

// sendLength completes an empty file that was created without its length. The request can be repeated.
func (a *attempt) sendLength(ctx context.Context, p *plan) error {
	piece := &protocol.Piece{Sums: a.can.Sums}
	if a.can.SHA256 {
		none := sha256.Sum256(nil)
		piece.SHA256 = none[:]
	}
	return a.repeated(ctx, func() error {
		if err := a.source.unchanged(); err != nil {
			return fmt.Errorf("%w: %w", errRead, err)
		}
		_, err := a.sender(p, 0).transmit(ctx, piece, &part{source: a.source})
		return err
	})
}

// file describes the file of a plan for the server.
func (a *attempt) file(p *plan) *protocol.File {
	size := p.layout.size
	if a.source == nil || a.lengthLater(p) {
		size = -1
	}
	return &protocol.File{
		Size: size, Chunk: p.layout.chunk, Lanes: len(p.lanes), Group: p.group, SHA256: p.sha256,
		Metadata: a.job.Args.metadata(), Token: a.token(p),
	}
}

// token returns the token of the file of a plan; "" for Config.Input, which is sent by one attempt.
func (a *attempt) token(p *plan) string {
	if a.source == nil {
		return ""
	}
	return sum128("%s %d %d", a.job.ID, p.file.Size, p.file.ModTime)
}

// groupOf returns the group of the first plan of a file. The next process finds its parts by that, if this one ends
// before the store has their URLs. Parts of another layout would overlap, and have another group.
func (a *attempt) groupOf(p *plan) string {
	return sum128("%s %d %d", a.token(p), p.layout.chunk, p.layout.lanes)
}

// sum128 returns 128 bits of the SHA-256 of a text in hexadecimal digits.
func sum128(format string, args ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return hex.EncodeToString(sum[:16])
}

// chunkSize returns the size of chunks in bytes, which newLayout enlarges for a large file. usual is
// the size for an upload that sets none.
func (a *attempt) chunkSize(usual int64) int64 {
	size := a.job.Args.ChunkSize
	if size <= 0 {
		size = usual
	}
	return max(size, a.can.ChunkMin)
}
