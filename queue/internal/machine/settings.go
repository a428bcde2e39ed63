package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stintgo/stint/queue"
)

// Configure is as [queue.Store] says.
func (m *Machine) Configure(ctx context.Context, now time.Time, name string, s queue.Settings) error {
	if err := validateSettings(name, s); err != nil {
		return err
	}
	if err := m.begin(ctx, now); err != nil {
		return err
	}
	s.Paused = m.settings[name].Paused
	return errors.Join(m.set(name, s), m.end(ctx))
}

// PauseQueue is as [queue.Store] says.
func (m *Machine) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	if err := validateSettings(name, queue.Settings{}); err != nil {
		return err
	}
	if err := m.begin(ctx, now); err != nil {
		return err
	}
	s := m.settings[name]
	if s.Paused = clonePause(p); p != nil && p.Since.IsZero() {
		s.Paused.Since = m.time()
	}
	return errors.Join(m.set(name, s), m.end(ctx))
}

// set puts settings into their row, and into force.
func (m *Machine) set(name string, s queue.Settings) error {
	value, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("%w: settings of queue %q: %w", queue.ErrInvalid, name, err)
	}
	if m.settings[name] = s; s == (queue.Settings{}) {
		delete(m.settings, name)
		value = nil
	}
	m.journal.set(rowSettings+name, value, false)
	if name != "" {
		m.configure(m.line(name))
		return nil
	}
	for _, l := range m.lines {
		m.configure(l)
	}
	return nil
}

// configure puts what is set for a queue into force: its own settings, else
// those of all; and a pause of all is one of each.
func (m *Machine) configure(l *line) {
	before := l.settings
	l.configure(merged(m.settings[l.name], m.settings[""]))
	if l.settings.KeyRate != before.KeyRate {
		m.resetKeyRates(l)
	}
	if l.settings.Rate != before.Rate {
		l.arrival = fixed{} // what was spent at the old rate says nothing of the new one
	}
	l.signal()
}

// merged are settings with those of all where nothing is set.
func merged(s, all queue.Settings) queue.Settings {
	return queue.Settings{
		Max:      cmp.Or(s.Max, all.Max),
		Caps:     cmp.Or(s.Caps, all.Caps),
		PerKey:   cmp.Or(s.PerKey, all.PerKey),
		Rate:     cmp.Or(s.Rate, all.Rate),
		KeyRate:  cmp.Or(s.KeyRate, all.KeyRate),
		Pending:  cmp.Or(s.Pending, all.Pending),
		Paused:   cmp.Or(s.Paused, all.Paused),
		Keep:     cmp.Or(s.Keep, all.Keep),
		KeepDead: cmp.Or(s.KeepDead, all.KeepDead),
	}
}

// resetKeyRates has every key of a queue begin anew, because the rate of keys
// may have changed.
func (m *Machine) resetKeyRates(l *line) {
	for name, k := range l.keys {
		m.rates.remove(k)
		if k.blocked > 0 {
			l.blocked.remove(k)
			l.order.Unblock(name)
		}
		delete(l.keys, name)
	}
}

// Settings is as [queue.Store] says.
func (m *Machine) Settings(context.Context) (map[string]queue.Settings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, queue.ErrClosed
	}
	all := maps.Clone(m.settings)
	for name, s := range all {
		s.Paused = clonePause(s.Paused)
		all[name] = s
	}
	return all, nil
}

// clonePause copies a pause: those that come and go are the caller's.
func clonePause(p *queue.Pause) *queue.Pause {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}

func validateSettings(name string, s queue.Settings) error {
	var errs []error
	if name != "" {
		errs = append(errs, checkName("queue", name))
	}
	for _, n := range []struct {
		what  string
		value float64
	}{
		{"max", float64(s.Max)},
		{"caps", float64(min(s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High,
			s.Caps.Higher, s.Caps.Highest))},
		{"per_key", float64(s.PerKey)},
		{"pending", float64(s.Pending)},
		{"rate.per_second", s.Rate.PerSecond},
		{"rate.burst", float64(s.Rate.Burst)},
		{"key_rate.per_second", s.KeyRate.PerSecond},
		{"key_rate.burst", float64(s.KeyRate.Burst)},
		{"keep.age", float64(s.Keep.Age)},
		{"keep.count", float64(s.Keep.Count)},
		{"keep_dead.age", float64(s.KeepDead.Age)},
		{"keep_dead.count", float64(s.KeepDead.Count)},
	} {
		if !(n.value >= 0) || n.value > 1e18 {
			errs = append(errs, fmt.Errorf("%w: %s is %v; it is 0 for none, or more", queue.ErrInvalid, n.what, n.value))
		}
	}
	return errors.Join(errs...)
}
