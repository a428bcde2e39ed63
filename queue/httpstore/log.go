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

// LogPosition is a place in the log of a task. The zero value is the beginning.
type LogPosition struct {
	Offset int64 // bytes before it
	// File identifies the file that Offset counts in, which is another one once the log
	// has lost its beginning. It is empty if the server does not say. The server
	// gives it meaning: it can be compared, and given back.
	File string
}

// Log returns what a task has written so far, from a position on, and where that begins:
// at that position, or at the beginning if the log has become another file, because it
// was too long and has lost its beginning. Where File is empty that is known only of a
// log that is shorter than Offset. It has to be closed. Errors: [queue.ErrNotFound] if
// the server has no log of the task, [queue.ErrUnavailable].
func (s *Store) Log(ctx context.Context, id queue.ID, from LogPosition) (log io.ReadCloser, at LogPosition, err error) {
	return s.log(ctx, url.Values{wire.QueryID: {id.String()}}, from)
}

// LogEnd returns the last n bytes of what a task has written so far, or all of it if that
// is less, and where they begin. It has to be closed. Errors are as for Log.
func (s *Store) LogEnd(ctx context.Context, id queue.ID, n int64) (log io.ReadCloser, at LogPosition, err error) {
	if n <= 0 {
		return nil, at, invalid("the last %d bytes of a log: ask for 1 and more", n)
	}
	ctx, release := s.bind(ctx)
	alive := time.AfterFunc(silence, release)
	defer alive.Stop()
	res, err := s.logRange(ctx, url.Values{wire.QueryID: {id.String()}}, fmt.Sprintf("bytes=-%d", n), "")
	if err != nil {
		release()
		return nil, at, err
	}
	at.File = res.Header.Get(wire.LogFile)
	switch res.StatusCode {
	case http.StatusOK:
		return &body{s, res.Body, alive, release}, at, nil
	case http.StatusPartialContent:
		if _, err = fmt.Sscanf(res.Header.Get("Content-Range"), "bytes %d-", &at.Offset); err == nil {
			return &body{s, res.Body, alive, release}, at, nil
		}
		err = s.nonsense("Content-Range %q", res.Header.Get("Content-Range"))
	default:
		err = s.refused(res)
	}
	_ = res.Body.Close() // nothing more is wanted of it
	release()
	return nil, LogPosition{}, err
}

// FollowLog is Log for a reader of everything up to a position: it waits for more, until
// the task is finished, but for some seconds at most. It does not wait if the server
// cannot know when there is more.
func (s *Store) FollowLog(
	ctx context.Context, id queue.ID, from LogPosition,
) (log io.ReadCloser, at LogPosition, err error) {
	size := strconv.FormatInt(from.Offset, 10)
	return s.log(ctx, url.Values{wire.QueryID: {id.String()}, wire.QuerySize: {size}}, from)
}

func (s *Store) log(
	ctx context.Context, query url.Values, from LogPosition,
) (log io.ReadCloser, at LogPosition, err error) {
	ctx, release := s.bind(ctx)
	alive := time.AfterFunc(silence, release)
	defer alive.Stop()
	res, err := s.logFrom(ctx, query, from)
	if err == nil && res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		_ = res.Body.Close() // nothing is wanted of it
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
		return &body{s, res.Body, alive, release}, at, nil
	}
	err = s.refused(res)
	_ = res.Body.Close() // nothing more is wanted of it
	release()
	return nil, LogPosition{}, err
}

// logFrom asks for a log from a position on.
func (s *Store) logFrom(ctx context.Context, query url.Values, from LogPosition) (*http.Response, error) {
	if from.Offset <= 0 {
		return s.logRange(ctx, query, "", from.File)
	}
	return s.logRange(ctx, query, fmt.Sprintf("bytes=%d-", from.Offset), from.File)
}

// logRange asks for a part of a log, or for all of it. The part is one of file unless that
// is empty.
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
		return nil, s.unavailable(err)
	}
	return res, nil
}

// body is what a log has. It releases its call when it is closed, and when a read brings
// nothing for as long as a server may be silent.
type body struct {
	s *Store
	io.ReadCloser
	alive   *time.Timer // calls release; runs while a read does
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
		err = b.s.noAnswer(silence)
	}
	return n, b.s.unavailable(err)
}

func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
