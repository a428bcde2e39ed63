// Package logthrottle keeps a log readable while one error repeats: the first of equal
// records is logged, those of the next minute are counted, and the next one after that
// minute is logged with their number.
package logthrottle

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Every is how often a record that repeats is logged.
const Every = time.Minute

// mostKeys bounds the memory: with more different records in a minute the oldest
// is forgotten, and is logged again when it comes again.
const mostKeys = 256

// Handler is a [slog.Handler] that passes records on to another. Records below
// [slog.LevelWarn] are not bounded. Two records are equal if they have the same level,
// message and attributes; attributes that are numbers, times or durations may differ,
// as counts do. It is safe for concurrent use.
type Handler struct {
	next  slog.Handler
	scope string // the attributes and groups that records get from With
	seen  *seen
}

var _ slog.Handler = (*Handler)(nil)

// New returns a handler in front of next; next itself if it is one.
func New(next slog.Handler) *Handler {
	if h, ok := next.(*Handler); ok {
		return h
	}
	return &Handler{next: next, seen: &seen{records: make(map[string]*repeated)}}
}

// Enabled is as [slog.Handler] says, as are the others.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle is as [slog.Handler] says.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || r.Time.IsZero() {
		return h.next.Handle(ctx, r)
	}
	more, pass := h.seen.count(h.key(&r), r.Time)
	if !pass {
		return nil
	}
	if more > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", more))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs is as [slog.Handler] says.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		addTo(&b, a)
	}
	return &Handler{h.next.WithAttrs(attrs), h.scope + b.String(), h.seen}
}

// WithGroup is as [slog.Handler] says.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.scope + "\x00" + name + ".", h.seen}
}

// key is what equal records have in common.
func (h *Handler) key(r *slog.Record) string {
	var b strings.Builder
	b.WriteString(r.Level.String())
	b.WriteString(r.Message)
	b.WriteString(h.scope)
	r.Attrs(func(a slog.Attr) bool {
		addTo(&b, a)
		return true
	})
	return b.String()
}

// addTo adds an attribute to a key, unless it is a number or a time.
func addTo(b *strings.Builder, a slog.Attr) {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindDuration, slog.KindTime:
		return
	default:
		b.WriteString("\x00" + a.Key + "=" + value.String())
	}
}

// seen is the records of the last minute.
type seen struct {
	mu      sync.Mutex
	records map[string]*repeated
}

// repeated is one of them.
type repeated struct {
	logged time.Time
	more   int // equal ones since then
}

// count reports whether a record is to be logged, and how many equal ones were not.
func (s *seen) count(key string, now time.Time) (more int, pass bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	if r == nil {
		s.makeRoom(now)
		s.records[key] = &repeated{logged: now}
		return 0, true
	}
	if now.Sub(r.logged) < Every {
		r.more++
		return 0, false
	}
	more = r.more
	*r = repeated{logged: now}
	return more, true
}

// makeRoom forgets what did not repeat, or, if all did, the oldest. The caller holds
// mu.
func (s *seen) makeRoom(now time.Time) {
	if len(s.records) < mostKeys {
		return
	}
	var oldest string
	for key, r := range s.records {
		if now.Sub(r.logged) >= Every && r.more == 0 {
			delete(s.records, key)
		} else if oldest == "" || r.logged.Before(s.records[oldest].logged) {
			oldest = key
		}
	}
	if len(s.records) >= mostKeys {
		delete(s.records, oldest)
	}
}
