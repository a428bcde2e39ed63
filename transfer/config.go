package transfer

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// Config configures [Handle]. The zero value is a good default.
type Config struct {
	// Client makes the requests. The default keeps connections open between requests, and
	// follows the proxy of the environment. Its Timeout must allow for the time of a chunk.
	Client *http.Client
	// Rate limits the bytes per second of all uploads of this process together, each at the
	// tier and on behalf of the key of its task; nil means no limit. Programs may use the same
	// limiter for other work.
	Rate *stint.Limiter
	// Retry is the policy for requests that fail within an attempt, by a broken connection
	// or an answer such as 500. Its Attempts count requests in a row after which the server
	// has no byte more, without those that are answered 503 with a Retry-After of 1 to 10 s:
	// the server is busy. The default makes 5, with delays from 200 ms to 5 s.
	Retry retry.Policy
	// Stall is how long a server may take no bytes, or not answer, before the request has
	// failed; 0 is one minute. The time for which Rate delays bytes does not count.
	Stall time.Duration
	// S3 makes the requests of uploads to s3:// URLs: the function Open of package
	// transfer/s3. nil refuses them, so that programs without S3 do not contain its client.
	S3 protocol.Opener
	// Input is the content of uploads whose Path is [Input], usually [os.Stdin]; nil refuses
	// them. It is read once, by one task.
	Input io.Reader
	// InputName distinguishes Input from those of other processes: an [Upload] of [Input] with
	// another name is refused, so that what an earlier process has left does not get it.
	InputName string
	// Logger receives requests that failed and uploads that start over; nil discards them.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Client == nil {
		c.Client = &http.Client{Transport: transport()}
	}
	// A redirect could send headers with secrets to another host.
	client := *c.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Client = &client
	if c.Retry == (retry.Policy{}) {
		c.Retry = retry.Policy{Attempts: 5, Max: 5 * time.Second, Jitter: retry.Decorrelated}
	}
	if c.Stall == 0 {
		c.Stall = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Stall < 0 {
		errs = append(errs, fmt.Errorf("%w: Stall is %s; it is 0 for the default, or more", queue.ErrInvalid, c.Stall))
	}
	if err := c.Retry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Retry: %w", queue.ErrInvalid, err))
	}
	return errors.Join(errs...)
}

// transport returns the default transport with as many idle connections as many lanes need,
// and with buffers that are larger than those for small requests. All configurations without a Client share it, so
// that calls of [Terminate] use the same connections.
//
//nolint:gochecknoglobals // a default, as http.DefaultTransport
var transport = sync.OnceValue(func() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // a program has replaced it
		return http.DefaultTransport
	}
	const (
		idleMax = 256
		buffer  = 256 << 10
	)
	t := base.Clone()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = idleMax, idleMax
	t.WriteBufferSize = buffer
	return t
})
