package reference

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Settings is what is set for queues and keys, by programs and by operators.
type Settings struct {
	values   map[setting]settingValue
	paused   map[string]*queue.Pause
	versions map[string]uint64
}

// setting names one field of a queue, or of a key of it, in one of the two layers.
type setting struct {
	queue, key string
	operator   bool
	field      queue.Field
}

type settingValue struct {
	queue.Settings // of which one field counts
	queue.Origin
}

func newSettings() *Settings {
	return &Settings{make(map[setting]settingValue), make(map[string]*queue.Pause), make(map[string]uint64)}
}

func (s *Settings) clone() *Settings {
	return &Settings{maps.Clone(s.values), maps.Clone(s.paused), maps.Clone(s.versions)}
}

// configure makes a change, and reports whether it is one. Errors: ErrChanged.
func (s *Settings) configure(now time.Time, name string, c queue.Change) (changed bool, err error) {
	of := func(f queue.Field) setting { return setting{name, c.Key, c.Operator, f} }
	from := queue.Origin{Operator: c.Operator, By: c.By, At: now, Default: name == ""}
	before := maps.Clone(s.values)
	for _, f := range c.Unset {
		delete(s.values, of(f))
	}
	for _, f := range slices.Concat(c.Set.Fields(), c.Unlimited) {
		var value queue.Settings
		value.Copy(f, &c.Set)
		if old, set := s.values[of(f)]; !set || old.Settings != value {
			s.values[of(f)] = settingValue{value, from}
		}
	}
	if maps.Equal(before, s.values) {
		return false, nil
	}
	if c.Version != 0 && c.Version != s.versions[name] {
		s.values = before
		return false, fmt.Errorf("%w: the version is %d", queue.ErrChanged, s.versions[name])
	}
	s.versions[name]++
	return true, nil
}

// Pause pauses a queue, or all queues if the name is ""; nil ends the pause.
func (s *Settings) Pause(now time.Time, name string, p *queue.Pause) {
	delete(s.paused, name)
	if p != nil {
		own := *p
		if own.Since.IsZero() {
			own.Since = now
		}
		s.paused[name] = &own
	}
}

// Paused reports whether the queue itself is paused, or, for "", all queues together.
func (s *Settings) Paused(name string) bool { return s.paused[name] != nil }

// value returns the value of a field that is in force for a queue, or a key of it.
func (s *Settings) value(name, key string, f queue.Field) (settingValue, bool) {
	for _, of := range []setting{{name, key, true, f}, {name, key, false, f}, {"", key, true, f}, {"", key, false, f}} {
		if v, set := s.values[of]; set {
			return v, true
		}
	}
	return settingValue{}, false
}

// InForce returns the settings in force for a queue.
func (s *Settings) InForce(name string) queue.Settings { return s.layer(name).Settings }

// layer returns the settings in force for a queue, with their origins.
func (s *Settings) layer(name string) (l queue.Layer) {
	for _, f := range queue.Fields() {
		if total := f == queue.FieldTotal || f == queue.FieldTotalPerKey; total && name != "" {
			continue
		}
		if v, set := s.value(name, "", f); set {
			l.Copy(f, &v.Settings)
			if l.From == nil {
				l.From = make(map[queue.Field]queue.Origin)
			}
			l.From[f] = v.Origin
		}
	}
	if l.Paused = s.paused[name]; l.Paused == nil {
		l.Paused = s.paused[""]
	}
	return l
}

// originOf returns the origin of a limit of a task's key: the key's own, or else that of
// all keys of the queue.
func (s *Settings) originOf(t *Task, own, perKey queue.Field) queue.Origin {
	if v, set := s.value(t.Queue, t.Key, own); set {
		return v.Origin
	}
	v, _ := s.value(t.Queue, "", perKey)
	return v.Origin
}

// keyLimit returns how many tasks of a key of a queue run at once; 0 means no limit.
func (s *Settings) keyLimit(name, key string) int {
	if v, set := s.value(name, key, queue.FieldMax); set {
		return v.Max
	}
	return s.InForce(name).PerKey
}

// keyRate returns the rate at which tasks of a key of a queue start.
func (s *Settings) keyRate(name, key string) queue.Rate {
	if v, set := s.value(name, key, queue.FieldRate); set {
		return v.Rate
	}
	return s.InForce(name).KeyRate
}

// total returns how many tasks of all queues run at once; 0 means no limit.
func (s *Settings) total() int {
	v, _ := s.value("", "", queue.FieldTotal)
	return v.Total
}

// totalOfKey returns how many tasks of a key run at once in all queues, and the origin of
// that limit; 0 means no limit.
func (s *Settings) totalOfKey(key string) (limit int, from queue.Origin) {
	if v, set := s.value("", key, queue.FieldTotal); set {
		return v.Total, v.Origin
	}
	v, _ := s.value("", "", queue.FieldTotalPerKey)
	return v.TotalPerKey, v.Origin
}

// keysWithLimits returns the keys of a queue that have settings of their own, and whether they
// have them in that queue alone.
func (s *Settings) keysWithLimits(name string) map[string]bool {
	keys := make(map[string]bool)
	for of := range s.values {
		if of.key != "" && (of.queue == name || of.queue == "") {
			keys[of.key] = keys[of.key] || of.queue == name
		}
	}
	return keys
}

// keysWithTotals returns the keys that have totals of their own.
func (s *Settings) keysWithTotals() map[string]bool {
	keys := make(map[string]bool)
	for of := range s.values {
		if of.key != "" && of.field == queue.FieldTotal {
			keys[of.key] = true
		}
	}
	return keys
}

// all returns what is set for each queue.
func (s *Settings) all() map[string]queue.Configured {
	all := make(map[string]queue.Configured)
	for of, v := range s.values {
		is := all[of.queue]
		layers := is.Layers
		if of.key != "" {
			layers = is.Keys[of.key]
		}
		layer := &layers.Program
		if of.operator {
			layer = &layers.Operator
		}
		if layer.From == nil {
			layer.From = make(map[queue.Field]queue.Origin)
		}
		layer.From[of.field] = v.Origin
		layer.Copy(of.field, &v.Settings)
		if of.key == "" {
			is.Layers = layers
		} else {
			if is.Keys == nil {
				is.Keys = make(map[string]queue.Layers)
			}
			is.Keys[of.key] = layers
		}
		all[of.queue] = is
	}
	for name, p := range s.paused {
		is, own := all[name], *p
		is.Paused = &own
		all[name] = is
	}
	for name, is := range all {
		is.Version, is.InForce = s.versions[name], s.layer(name)
		all[name] = is
	}
	return all
}
