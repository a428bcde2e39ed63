package httpstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// answerMax limits the body of an answer, in bytes. A page of tasks may be large, but no
// stint server sends more.
const answerMax = 1 << 30

// firstWait and longestWait limit the pause between two attempts to reach a server.
const (
	firstWait   = 10 * time.Millisecond
	longestWait = 200 * time.Millisecond
)

// request is a call that may be sent more than once.
type request struct {
	path  string
	now   time.Time // zero if the call has no time
	begun time.Time // when it was first sent
	body  []byte    // nil for a GET
	typ   string    // of the body: [wire.JSON] or [wire.Packed]
	in    any       // what the body encodes
	key   string    // see [wire.Key]
}

// clock returns the present time by the caller's clock. The server takes the difference
// to its own time for the difference of the clocks, so the time since the call was first
// sent is added, in whole seconds: the server ignores less.
func (q *request) clock() time.Time {
	if q.now.IsZero() {
		return q.now
	}
	return q.now.Add(clock.Now().Sub(q.begun).Truncate(time.Second))
}

// newRequest returns a call at a time, without a body if in is nil. The call is packed if it can
// be, and in is a pointer then, unless the server has not known such a call recently.
func (l *link) newRequest(now time.Time, path string, in any) (q request, err error) {
	q = request{path: path, now: now, in: in}
	if packed, ok := wire.PackedPath(path); ok && !l.jsonOnly() {
		q.path, q.typ = packed, wire.Packed
		q.body, err = wire.Pack(in)
		return q, err
	}
	err = q.encode()
	return q, err
}

// encode makes the body JSON.
func (q *request) encode() (err error) {
	if q.in == nil {
		return nil
	}
	q.typ = wire.JSON
	if q.body, err = json.Marshal(q.in); err != nil {
		return invalid("%w", err)
	}
	return nil
}

// packAgain is how long calls are made in JSON after a server has answered that it does not know a
// packed one: a server of this version may replace it.
const packAgain = time.Minute

// jsonOnly reports whether a server has not known a packed call recently.
func (l *link) jsonOnly() bool {
	since := l.unknownAt.Load()
	return since != nil && clock.Now().Sub(*since) < packAgain
}

// fallBack makes a packed call one in JSON, if a is the answer of a server that does not know
// packed calls of this program's types. Such a server has not made the call.
func (l *link) fallBack(q *request, a *answer) (changed bool, err error) {
	if q.typ != wire.Packed || a.status != http.StatusNotFound && a.status != http.StatusUnsupportedMediaType {
		return false, nil
	}
	var p wire.Problem
	err = json.Unmarshal(a.body, &p)
	if err != nil || p.Code != wire.UnknownCall && p.Code != wire.UnknownType {
		return false, nil //nolint:nilerr // the answer is another one, which the caller decodes
	}
	now := clock.Now()
	l.unknownAt.Store(&now)
	q.path = wire.JSONPath(q.path)
	return true, q.encode()
}

// call makes a call, and decodes its answer into out. It returns how far the server's
// clock is ahead of the caller's, whose time is now.
func (l *link) call(ctx context.Context, now time.Time, path string, in, out any) (ahead time.Duration, err error) {
	q, err := l.newRequest(now, path, in)
	if err != nil {
		return 0, err
	}
	if path == wire.Command {
		q.key = rand.Text()
	}
	return l.deliver(ctx, q, out)
}

// deliver sends a request until it is answered, and decodes the answer into out.
func (l *link) deliver(ctx context.Context, q request, out any) (ahead time.Duration, err error) {
	ctx, release := l.bind(ctx)
	defer release()
	q.begun = clock.Now()
	a, err := l.sendUntilAnswered(ctx, q)
	if err != nil {
		return 0, err
	}
	return a.ahead(), l.decode(a, out)
}

// answer is a complete answer of a server.
type answer struct {
	sent   time.Time // when the call was sent, by the caller's clock
	status int
	header http.Header
	body   []byte
}

// ahead returns how far the clock of the answer is ahead of the caller's. That is less
// than a second, because the server converts the times of an answer otherwise.
func (a *answer) ahead() time.Duration {
	server, err := time.Parse(time.RFC3339Nano, a.header.Get(wire.Now))
	if err != nil {
		return 0 // the server does not send its time
	}
	return server.Sub(a.sent)
}

// sendUntilAnswered sends a request until it is answered, or Patience or ctx ends. A server that is
// not available may be about to end, and another one to start.
func (l *link) sendUntilAnswered(ctx context.Context, q request) (*answer, error) {
	patience := time.NewTimer(l.cfg.Patience)
	defer patience.Stop()
	var last error // why the server has not answered
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		if ctx.Err() != nil {
			return nil, endOf(ctx, last)
		}
		a, err := l.try(ctx, q)
		if err == nil {
			if changed, err := l.fallBack(&q, a); changed || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		switch {
		case err == nil && a.status != http.StatusServiceUnavailable:
			return a, nil
		case ctx.Err() != nil:
			return nil, endOf(ctx, last)
		case errors.Is(err, ErrNoAnswer), isForeign(err):
			return nil, l.unavailable(err)
		case err == nil:
			last = l.decode(a, nil)
		default:
			last = l.unavailable(err)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-patience.C:
			again.Stop()
			return nil, last
		case <-ctx.Done():
			again.Stop()
			return nil, endOf(ctx, last)
		}
	}
}

// endOf returns the cause for which a context has ended, and why the server had not answered by then.
func endOf(ctx context.Context, why error) error {
	if why == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %v", context.Cause(ctx), why) //nolint:errorlint // the call has ended for the cause
}

// ErrNoAnswer is wrapped by the error of a call that the server has not answered within
// [Config.Timeout]: its process may be stopped, or overloaded. The result of the call is
// unknown. The error also wraps [queue.ErrUnavailable].
var ErrNoAnswer = errors.New("no answer in time")

// ErrWrongToken is wrapped by the error of a call whose [Config.Token] is not the token
// of the server. The call has changed nothing. The error also wraps
// [queue.ErrUnavailable].
var ErrWrongToken = errors.New("wrong token")

// try sends a request once, and reads the whole answer.
func (l *link) try(ctx context.Context, q request) (*answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.Timeout, l.noAnswer(l.cfg.Timeout))
	defer cancel()
	a, err := l.send(ctx, q)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a, err
}

func (l *link) send(ctx context.Context, q request) (*answer, error) {
	sent := q.clock()
	res, err := l.open(ctx, q, sent)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read completely, or useless
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMax+1))
	if err != nil {
		return nil, err
	}
	return &answer{sent, res.StatusCode, res.Header, body}, nil
}

// open sends a request, and returns when the answer begins.
func (l *link) open(ctx context.Context, q request, now time.Time) (*http.Response, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if q.body != nil {
		method, body = http.MethodPost, bytes.NewReader(q.body)
	}
	req, err := l.request(ctx, method, q.path, body)
	if err != nil {
		return nil, err
	}
	if q.body != nil {
		req.Header.Set("Content-Type", q.typ)
	}
	req.Header.Set(wire.Now, now.Format(time.RFC3339Nano))
	req.Header.Set(wire.Partial, "1")
	if q.key != "" {
		req.Header.Set(wire.Key, q.key)
	}
	return l.client.Do(req)
}

// request returns an HTTP request with the headers that a server requires.
func (l *link) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(wire.Client, "httpstore")
	if l.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.cfg.Token)
	}
	return req, nil
}

// decode decodes the answer of a call, or returns its error.
func (l *link) decode(a *answer, out any) error {
	typ, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	switch {
	case len(a.body) > answerMax:
		return l.invalidAnswer("more than %d bytes", answerMax)
	case a.status == http.StatusOK && typ == wire.JSON:
		if err := json.Unmarshal(a.body, out); err != nil {
			return l.invalidAnswer("%w", err)
		}
		return nil
	case a.status == http.StatusOK && typ == wire.Packed:
		if err := wire.Unpack(a.body, out, answerMax); err != nil {
			return l.invalidAnswer("%v", err) // the call is neither invalid nor too large
		}
		return nil
	case typ == wire.ProblemJSON:
		var p wire.Problem
		if err := json.Unmarshal(a.body, &p); err != nil {
			return l.invalidAnswer("%w", err)
		}
		if p.Code == wire.WrongToken {
			return fmt.Errorf("%w: %w", ErrWrongToken, p.Err())
		}
		return p.Err()
	}
	return l.invalidAnswer("status %d, type %q", a.status, typ)
}

// invalidAnswer returns the error of an answer that does not come from a stint server.
func (l *link) invalidAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %s is not a server of this version: it answers "+format,
		append([]any{queue.ErrUnavailable, l.name}, args...)...)
}

// noAnswer returns the error of a server that has been silent for a time.
func (l *link) noAnswer(after time.Duration) error {
	return fmt.Errorf("%w: %s has said nothing for %s", ErrNoAnswer, l.name, after)
}

// isForeign reports whether a process of another user listens in place of the server.
// Another attempt would find the same process.
func isForeign(err error) bool {
	_, ok := errors.AsType[*peer.ForeignError](err)
	return ok
}

func (l *link) unavailable(err error) error {
	if isForeign(err) {
		return fmt.Errorf("%w: %s is not trusted, and nothing was sent to it: %w", queue.ErrUnavailable, l.name, err)
	}
	if errors.Is(err, ErrNoAnswer) {
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err // the name of the server is enough
	}
	return fmt.Errorf("%w: %s cannot be reached: %w", queue.ErrUnavailable, l.name, err)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{queue.ErrInvalid}, args...)...)
}
