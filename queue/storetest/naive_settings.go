package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// setting is one thing that somebody has set.
type setting struct {
	queue, key string
	operator   bool
	field      queue.Field
}

type settingValue struct {
	queue.Settings // of which one field counts
	queue.Origin
}

// settings are all that is set.
type settings struct {
	values   map[setting]settingValue
	paused   map[string]*queue.Pause
	versions map[string]uint64
}

func newSettings() settings {
	return settings{make(map[setting]settingValue), make(map[string]*queue.Pause), make(map[string]uint64)}
}

func (s *settings) clone() settings {
	return settings{maps.Clone(s.values), maps.Clone(s.paused), maps.Clone(s.versions)}
}

func (n *naive) Configure(_ context.Context, now time.Time, name string, c queue.Change) error {
	if err := c.Validate(name); err != nil {
		return err
	}
	end, err := n.begin(now)
	if err != nil {
		return err
	}
	defer end()
	of := func(f queue.Field) setting { return setting{name, c.Key, c.Operator, f} }
	from := queue.Origin{Operator: c.Operator, By: c.By, At: n.now, Default: name == ""}
	before := maps.Clone(n.settings.values)
	for _, f := range c.Unset {
		delete(n.settings.values, of(f))
	}
	for _, f := range slices.Concat(c.Set.Fields(), c.Unlimited) {
		var value queue.Settings
		value.Copy(f, &c.Set)
		if old, set := n.settings.values[of(f)]; !set || old.Settings != value {
			n.settings.values[of(f)] = settingValue{value, from}
		}
	}
	if maps.Equal(before, n.settings.values) {
		return nil
	}
	if c.Version != 0 && c.Version != n.settings.versions[name] {
		n.settings.values = before
		return fmt.Errorf("%w: the version is %d", queue.ErrChanged, n.settings.versions[name])
	}
	n.settings.versions[name]++
	for i := range n.turns { // the slots that are free may be others
		n.turns[i].until = time.Time{}
	}
	n.reserve()
	n.signal()
	return nil
}

func (n *naive) PauseQueue(_ context.Context, now time.Time, name string, p *queue.Pause) error {
	if err := p.Validate(); err != nil {
		return err
	}
	end, err := n.begin(now)
	if err != nil {
		return err
	}
	defer end()
	delete(n.settings.paused, name)
	if p != nil {
		own := *p
		if own.Since.IsZero() {
			own.Since = n.now
		}
		n.settings.paused[name] = &own
	}
	n.signal()
	return nil
}

// value is the value of a field that counts for a queue, or a key of it.
func (n *naive) value(name, key string, f queue.Field) (settingValue, bool) {
	for _, of := range []setting{{name, key, true, f}, {name, key, false, f}, {"", key, true, f}, {"", key, false, f}} {
		if v, set := n.settings.values[of]; set {
			return v, true
		}
	}
	return settingValue{}, false
}

// inForce is what holds for a queue.
func (n *naive) inForce(name string) queue.Settings { return n.layer(name).Settings }

func (n *naive) layer(name string) (l queue.Layer) {
	for _, f := range queue.Fields() {
		if total := f == queue.FieldTotal || f == queue.FieldTotalPerKey; total && name != "" {
			continue
		}
		if v, set := n.value(name, "", f); set {
			l.Copy(f, &v.Settings)
			if l.From == nil {
				l.From = make(map[queue.Field]queue.Origin)
			}
			l.From[f] = v.Origin
		}
	}
	if l.Paused = n.settings.paused[name]; l.Paused == nil {
		l.Paused = n.settings.paused[""]
	}
	return l
}

// originOf says who set a limit that a task's key has.
func (n *naive) originOf(r *row, own, perKey queue.Field) queue.Origin {
	if v, set := n.value(r.Queue, r.Key, own); set {
		return v.Origin
	}
	v, _ := n.value(r.Queue, "", perKey)
	return v.Origin
}

// keysWithLimits counts what runs of each key of a queue that has limits of its own.
func (n *naive) keysWithLimits(name string) map[string]int {
	running := make(map[string]int)
	for of := range n.settings.values {
		if of.key != "" && (of.queue == name || of.queue == "") {
			running[of.key] = n.running(name, &of.key)
		}
	}
	return running
}

// keyLimit is how many tasks of a key of a queue run at once; 0 is no limit.
func (n *naive) keyLimit(name, key string) int {
	if v, set := n.value(name, key, queue.FieldMax); set {
		return v.Max
	}
	return n.inForce(name).PerKey
}

// keyRate is the rate at which tasks of a key of a queue start.
func (n *naive) keyRate(name, key string) queue.Rate {
	if v, set := n.value(name, key, queue.FieldRate); set {
		return v.Rate
	}
	return n.inForce(name).KeyRate
}

func (n *naive) Settings(context.Context) (map[string]queue.Configured, error) {
	end, err := n.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	all := make(map[string]queue.Configured)
	for of, v := range n.settings.values {
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
	for name, p := range n.settings.paused {
		is, own := all[name], *p
		is.Paused = &own
		all[name] = is
	}
	for name, is := range all {
		is.Version, is.InForce = n.settings.versions[name], n.layer(name)
		all[name] = is
	}
	return all, nil
}
