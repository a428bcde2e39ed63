package httpstore

import (
	"bufio"
	"context"
	"errors"
	"mime"
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
)

// silence is how long a server may send nothing on a stream before the connection counts
// as broken.
const silence = 3 * wire.Alive

// lineMax is the longest line of a stream, in bytes: an event has the text of an error,
// which stores truncate.
const lineMax = 1 << 20

var errEnded = errors.New("the stream has ended")

// lines reads a stream until it ends, which is always an error. It calls opened when the
// server has accepted the request, and fn with each line that is not empty.
func (l *link) lines(ctx context.Context, path string, opened func(), fn func(line []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(silence, func() { cancel(l.noAnswer(silence)) })
	defer alive.Stop()
	err := l.scan(ctx, path, opened, func(line []byte) error {
		alive.Reset(silence)
		if len(line) == 0 {
			return nil
		}
		return fn(line)
	})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrNoAnswer):
		return l.unavailable(cause)
	case cause != nil:
		return cause
	}
	return err
}

func (l *link) scan(ctx context.Context, path string, opened func(), fn func(line []byte) error) error {
	res, err := l.open(ctx, request{path: path}, clock.Now())
	if err != nil {
		return l.unavailable(err)
	}
	defer res.Body.Close() //nolint:errcheck // the rest of the stream is useless
	typ, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || typ != wire.Lines {
		return l.refused(res)
	}
	opened()
	sc := bufio.NewScanner(res.Body)
	sc.Buffer(nil, lineMax)
	for sc.Scan() {
		if err := fn(sc.Bytes()); err != nil {
			return err
		}
	}
	return l.unavailable(errors.Join(sc.Err(), errEnded))
}
