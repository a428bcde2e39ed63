package httpstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// LogPosition is a position in the log of a task. The zero value is the beginning.
type LogPosition struct {
	Offset int64 // the number of bytes before it
	// File identifies the file that Offset refers to. It changes when the log has lost
	// its beginning. It is empty if the server does not identify files. Only the server
	// interprets it; clients may compare it and send it back.
	File string
}

// Log returns what a task has written so far, from a position on, and the position where
// that begins: the given one, or the beginning if the log has become another file,
// because it was too long and has lost its beginning. If File is empty, only a log that
// is shorter than Offset is recognised as another file. The caller closes the log.
// Errors: [queue.ErrNotFound] if the server has no log of the task,
// [queue.ErrUnavailable].
func (s *Store) Log(ctx context.Context, id queue.ID, from LogPosition) (log io.ReadCloser, at LogPosition, err error) {
	return s.log(ctx, url.Values{wire.QueryID: {id.String()}}, from)
}

// LogEnd returns the last n bytes of what a task has written so far, or all of it if that
// is less, and the position where they begin. The caller closes the log. Errors are as
// for Log.
func (s *Store) LogEnd(ctx context.Context, id queue.ID, n int64) (log io.ReadCloser, at LogPosition, err error) {
	if n <= 0 {
		return nil, at, invalid("the last %d bytes of a log: ask for 1 and more", n)
	}
	ctx, alive, release := s.bindAlive(ctx)
	defer alive.Stop()
	res, err := s.logRange(ctx, url.Values{wire.QueryID: {id.String()}}, fmt.Sprintf("bytes=-%d", n), "")
	if err != nil {
		release()
		return nil, at, err
	}
	at.File = res.Header.Get(wire.LogFile)
	switch res.StatusCode {
	case http.StatusOK:
		return &body{s.link, res.Body, alive, release}, at, nil
	case http.StatusPartialContent:
		if _, err = fmt.Sscanf(res.Header.Get("Content-Range"), "bytes %d-", &at.Offset); err == nil {
			return &body{s.link, res.Body, alive, release}, at, nil
		}
		err = s.invalidAnswer("Content-Range %q", res.Header.Get("Content-Range"))
	default:
		err = s.refused(res)
	}
	_ = res.Body.Close() // the rest of the answer is useless
	release()
	return nil, LogPosition{}, err
}

// FollowLog is Log for a reader that has read everything up to a position: it waits for
// some seconds until there is more or the task is finished. It does not wait if the
// server cannot detect when there is more.
func (s *Store) FollowLog(
	ctx context.Context, id queue.ID, from LogPosition,
) (log io.ReadCloser, at LogPosition, err error) {
	size := strconv.FormatInt(from.Offset, 10)
	return s.log(ctx, url.Values{wire.QueryID: {id.String()}, wire.QuerySize: {size}}, from)
}

func (s *Store) log(
	ctx context.Context, query url.Values, from LogPosition,
) (log io.ReadCloser, at LogPosition, err error) {
	ctx, alive, release := s.bindAlive(ctx)
	defer alive.Stop()
	res, err := s.logFrom(ctx, query, from)
	if err == nil && res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		_ = res.Body.Close() // the rest of the answer is useless
		if res.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", from.Offset) {
			release()
			return http.NoBody, LogPosition{Offset: from.Offset, File: res.Header.Get(wire.LogFile)}, nil
		}
		res, err = s.logFrom(ctx, query, LogPosition{})
	}
	if err != nil {
		release()
		return nil, at, err
	}
	at.File = res.Header.Get(wire.LogFile)
	switch res.StatusCode {
	case http.StatusPartialContent:
		at.Offset = from.Offset
		fallthrough
	case http.StatusOK:
		return &body{s.link, res.Body, alive, release}, at, nil
	}
	err = s.refused(res)
	_ = res.Body.Close() // the rest of the answer is useless
	release()
	return nil, LogPosition{}, err
}

// bindAlive is bind of a context that also ends when the server says nothing until alive fires.
func (l *link) bindAlive(ctx context.Context) (bound context.Context, alive *time.Timer, release func()) {
	ctx, release = l.bind(ctx)
	bound, end := context.WithCancelCause(ctx)
	return bound, time.AfterFunc(silence, func() { end(l.noAnswer(silence)) }), release
}

// logFrom requests a log from a position on.
func (s *Store) logFrom(ctx context.Context, query url.Values, from LogPosition) (*http.Response, error) {
	if from.Offset <= 0 {
		return s.logRange(ctx, query, "", from.File)
	}
	return s.logRange(ctx, query, fmt.Sprintf("bytes=%d-", from.Offset), from.File)
}

// logRange requests a part of a log, or all of it. The part refers to file unless that is
// empty.
func (s *Store) logRange(ctx context.Context, query url.Values, part, file string) (*http.Response, error) {
	req, err := s.request(ctx, http.MethodGet, wire.Log+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if part != "" {
		req.Header.Set("Range", part)
	}
	if file != "" {
		req.Header.Set(wire.LogFile, file)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrNoAnswer) {
			err = cause
		}
		return nil, s.unavailable(err)
	}
	return res, nil
}

// body is the content of a log. It ends its call when it is closed, and when a read
// returns nothing for as long as a server may be silent.
type body struct {
	link *link
	io.ReadCloser
	alive   *time.Timer // ends the call; armed during a read
	release func()
}

func (b *body) Read(p []byte) (n int, err error) {
	b.alive.Reset(silence)
	n, err = b.ReadCloser.Read(p)
	inTime := b.alive.Stop()
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case !inTime:
		err = b.link.noAnswer(silence)
	}
	return n, b.link.unavailable(err)
}

func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
