package machine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
)

// settingsRow is how a row keeps what is set under a name. Rows that were written before
// there were layers have the settings of a program in the fields of Settings: they are
// read as the layer of programs, of unknown origin.
type settingsRow struct {
	queue.Settings
	Version  uint64                  `json:"version,omitempty"`
	Program  queue.Layer             `json:"program,omitzero"`
	Operator queue.Layer             `json:"operator,omitzero"`
	Keys     map[string]queue.Layers `json:"keys,omitempty"`
}

// mostKeys is how many keys may have limits of their own under one name: all of them
// are one row.
const mostKeys = 10_000

// changeLayer changes the layer that a change is for, and reports whether that makes a
// difference. A field that has the value already keeps its origin, so that programs may
// set what they need at each start.
func changeLayer(layers *queue.Layers, c *queue.Change, from queue.Origin) (changed bool) {
	layer := &layers.Program
	if c.Operator {
		layer = &layers.Operator
	}
	to := queue.Layer{Settings: layer.Settings, From: maps.Clone(layer.From)}
	if to.From == nil {
		to.From = make(map[queue.Field]queue.Origin)
	}
	set := func(f queue.Field, value *queue.Settings) {
		before := to.Settings
		_, had := to.From[f]
		if to.Copy(f, value); !had || to.Settings != before {
			to.From[f], changed = from, true
		}
	}
	for _, f := range c.Set.Fields() {
		set(f, &c.Set)
	}
	for _, f := range c.Unlimited {
		set(f, &queue.Settings{})
	}
	for _, f := range c.Unset {
		if _, had := to.From[f]; had {
			delete(to.From, f)
			to.Copy(f, &queue.Settings{})
			changed = true
		}
	}
	if len(to.From) == 0 {
		to.From = nil
	}
	*layer = to
	return changed
}

// setKey sets the layers of a key.
func setKey(is *queue.Configured, key string, layers queue.Layers) error {
	is.Keys = maps.Clone(is.Keys)
	if layers.Program.From == nil && layers.Operator.From == nil {
		delete(is.Keys, key)
		return nil
	}
	if is.Keys == nil {
		is.Keys = make(map[string]queue.Layers)
	}
	if is.Keys[key] = layers; len(is.Keys) > mostKeys {
		return fmt.Errorf("%w: more than %d keys of a queue would have limits of their own: unset those of others, "+
			"or limit all keys with per_key", queue.ErrInvalid, mostKeys)
	}
	return nil
}

// isSet reports whether anything is set.
func isSet(is *queue.Configured) bool {
	return is.Paused != nil || is.Program.From != nil || is.Operator.From != nil || len(is.Keys) > 0
}

// versionShift leaves each epoch 2²⁸ versions, and all versions below 2⁵³, which
// JSON has exactly.
const versionShift = 28

// queueFields are the fields that count for each queue.
func queueFields() []queue.Field {
	ofAll := func(f queue.Field) bool { return slices.Contains(totalFields(), f) }
	return slices.DeleteFunc(queue.Fields(), ofAll)
}

// inForce returns what is in force of some fields for a queue, given what is set for
// itself and for all queues. The caller must not change From.
func inForce(own, all *queue.Configured, fields []queue.Field) (l queue.Layer) {
	if l.Paused = own.Paused; l.Paused == nil {
		l.Paused = all.Paused
	}
	for _, f := range fields {
		value, from, ok := own.Value(f)
		if !ok {
			value, from, ok = all.Value(f)
		}
		if !ok {
			continue
		}
		if l.From == nil {
			l.From = make(map[queue.Field]queue.Origin)
		}
		l.From[f] = from
		l.Copy(f, &value)
	}
	return l
}

// keyLimits are the limits in force of single keys of a queue.
type keyLimits struct {
	running map[string]int // at once; 0 is no limit
	rates   map[string]rate
}

func keyLimitsOf(own, all map[string]queue.Layers) (limits keyLimits) {
	if len(own)+len(all) == 0 {
		return limits
	}
	limits = keyLimits{make(map[string]int), make(map[string]rate)}
	for _, keys := range []map[string]queue.Layers{all, own} { // a queue's own come last, and win
		for key, layers := range keys {
			if value, _, ok := layers.Value(queue.FieldMax); ok {
				limits.running[key] = value.Max
			}
			if value, _, ok := layers.Value(queue.FieldRate); ok {
				limits.rates[key] = newRate(value.Rate)
			}
		}
	}
	return limits
}

// cloneLayers copies layers: the caller of the store may change what it gets.
func cloneLayers(l queue.Layers) queue.Layers {
	l.Program.From, l.Operator.From = maps.Clone(l.Program.From), maps.Clone(l.Operator.From)
	return l
}

// clonePause copies a pause: the caller of the store owns what it gives and gets.
func clonePause(p *queue.Pause) *queue.Pause {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}

// validateName checks the name of a queue, or "" for all.
func validateName(name string) error {
	if name == "" {
		return nil
	}
	return checkName("queue", name)
}
