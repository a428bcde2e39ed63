package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/logthrottle"
)

// Config configures a [Receiver]. The zero value is a good default: no limits, and
// unfinished uploads are removed after a day.
type Config struct {
	// Path is where the handler is mounted: the part of a URL's path before the ID of an
	// upload. It starts and ends with a slash; "" means "/files/".
	Path string
	// MaxSize is the largest upload, in bytes; 0 means no limit.
	MaxSize int64
	// Quota is how many bytes all unfinished uploads may take on the disk; 0 means no limit. An
	// upload of known size takes its size from its creation on. Finished files are the
	// application's and do not count.
	Quota int64
	// KeyQuota is Quota for the unfinished uploads of one key; 0 means no limit.
	KeyQuota int64
	// Expiry is how long an unfinished upload is kept that receives nothing, and how long
	// a finished one is still known by its ID; 0 means 24 h.
	Expiry time.Duration
	// ReadTimeout is how long a client may be silent within a body; 0 means 1 min. What was
	// received before is kept.
	ReadTimeout time.Duration
	// Slots bounds how many requests receive a body at once, by the tier and the key of the
	// request. A request has one slot while it receives. Nil means no bound.
	Slots *stint.Scheduler
	// Rate bounds the bytes per second of all bodies together, by the tier and the key of
	// the request. Nil means no bound.
	Rate *stint.Limiter
	// Key returns on whose behalf a request uploads: a tenant, an account. Nil, or "", means no
	// key. It is not an access check: do that in a handler in front of this one.
	Key func(*http.Request) string
	// Priority returns the tier of a request. Nil takes the tier of its context (see
	// [stint.WithPriority]).
	Priority func(*http.Request) stint.Priority
	// Finished is called after a file has its place and is on the disk. If it fails, or the
	// process ends before it has returned, it is called again: when the client asks again,
	// each minute, and after the next Open. So it is called at least once for each file, by
	// one goroutine at a time, and for several files at once. The context lives as long as the receiver.
	Finished func(ctx context.Context, u Upload) error
	// Origins are the origins of web pages that may upload from a browser, such as
	// "https://example.com"; "*" is all. Empty allows pages of the same origin only.
	Origins []string
	// Logger receives internal errors, and says when requests wait for Slots for more than 10 s. One that repeats
	// is logged once a minute. Nil discards them.
	Logger *slog.Logger

	disk       disk          // tests have faults in it
	interval   time.Duration // tests have another progressEvery
	uploadsMax int           // tests have another uploadsMax
}

// Upload is a finished upload.
type Upload struct {
	ID string
	// Name is the name that the client gave, without the parts that no file name may have,
	// or the ID if there was none.
	Name     string
	Path     string // of the file, starting with the directory given to Open
	Size     int64  // bytes
	Key      string
	Priority stint.Priority
	// Metadata is what the client said about the file. Nothing in it has been checked.
	Metadata map[string]string
	Created  time.Time
}

func (c Config) withDefaults() Config {
	c.Path = cmp.Or(c.Path, "/files/")
	c.Expiry = cmp.Or(c.Expiry, 24*time.Hour)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	c.interval = cmp.Or(c.interval, progressEvery)
	c.uploadsMax = cmp.Or(c.uploadsMax, uploadsMax)
	if c.Key == nil {
		c.Key = func(*http.Request) string { return "" }
	}
	if c.Priority == nil {
		c.Priority = func(r *http.Request) stint.Priority { return stint.PriorityFrom(r.Context()) }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(logthrottle.New(c.Logger.Handler()))
	return c
}

// validate returns all problems of a configuration with defaults.
func (c Config) validate() error {
	var all []error
	if !strings.HasPrefix(c.Path, "/") || !strings.HasSuffix(c.Path, "/") {
		all = append(all, fmt.Errorf("path %q must start and end with a slash", c.Path))
	}
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"MaxSize", c.MaxSize},
		{"Quota", c.Quota},
		{"KeyQuota", c.KeyQuota},
		{"Expiry", int64(c.Expiry)},
		{"ReadTimeout", int64(c.ReadTimeout)},
	} {
		if v.n < 0 {
			all = append(all, fmt.Errorf("%s is negative", v.name))
		}
	}
	return errors.Join(all...)
}
