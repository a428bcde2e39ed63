package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
)

// settingsRow is the row of the settings under one name, as JSON. Rows written by
// versions without layers have the settings of programs in the fields of Settings: they
// are read as the layer of programs, of unknown origin. Of the fields of Settings, new
// rows have only Paused. Keys is keysApart if keys have limits of their own. Versions that kept
// these limits here cannot read that, so they do not open a store whose limits they would
// ignore; their rows are read, and converted by Open.
type settingsRow struct {
	queue.Settings
	Version  uint64          `json:"version,omitempty"`
	Program  queue.Layer     `json:"program,omitzero"`
	Operator queue.Layer     `json:"operator,omitzero"`
	Keys     json.RawMessage `json:"keys,omitempty"`
}

const keysApart = `"in rows of their own"`

// keys returns the limits of keys in the row of an earlier version.
func (r *settingsRow) keys() (keys map[string]queue.Layers, err error) {
	if len(r.Keys) > 0 && string(r.Keys) != keysApart {
		err = json.Unmarshal(r.Keys, &keys)
	}
	return keys, err
}

// maxLimitedKeys limits the keys that have limits of their own under one name, because
// [queue.Admin.Settings] returns all of them.
const maxLimitedKeys = 10_000

// changeLayer applies a change to the layer of programs or of operators, and reports
// whether the layer has changed. A field that already has the value keeps its origin, so
// that programs can set the same values at each start.
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

// setKey sets the layers of a key, or removes the key if both are empty.
func setKey(is *queue.Configured, key string, layers queue.Layers) error {
	if layers.Program.From == nil && layers.Operator.From == nil {
		delete(is.Keys, key)
		return nil
	}
	if is.Keys == nil {
		is.Keys = make(map[string]queue.Layers)
	}
	if _, had := is.Keys[key]; !had && len(is.Keys) >= maxLimitedKeys {
		return fmt.Errorf("%w: more than %d keys of a queue would have limits of their own: unset those of other keys, "+
			"or limit all keys with per_key", queue.ErrInvalid, maxLimitedKeys)
	}
	is.Keys[key] = layers
	return nil
}

// isSet reports whether any field is set.
func isSet(is *queue.Configured) bool {
	return is.Paused != nil || is.Program.From != nil || is.Operator.From != nil || len(is.Keys) > 0
}

// versionShift gives each epoch 2²⁸ versions, and keeps all versions below 2⁵³, which a
// JSON number represents exactly.
const versionShift = 28

// queueFields returns the fields that apply to each queue by itself.
func queueFields() []queue.Field {
	ofAll := func(f queue.Field) bool { return slices.Contains(totalFields(), f) }
	return slices.DeleteFunc(queue.Fields(), ofAll)
}

// inForce returns the values in force of the given fields for a queue: those set for the
// queue itself, else those set for all queues. The caller must not change From.
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

// keyLimits are limits of single keys: those of one queue, or those of each queue, which all
// queues share.
type keyLimits struct {
	running map[string]int // tasks that may run at once; 0: no limit
	rates   map[string]rate
}

// keyLimitsOf returns the limits of keys from settings.
func keyLimitsOf(keys map[string]queue.Layers) keyLimits {
	limits := keyLimits{make(map[string]int), make(map[string]rate)}
	for key, layers := range keys {
		limits.set(key, layers)
	}
	return limits
}

// set sets the limits of a key from its settings.
func (l *keyLimits) set(key string, layers queue.Layers) {
	delete(l.running, key)
	delete(l.rates, key)
	if value, _, ok := layers.Value(queue.FieldMax); ok {
		l.running[key] = value.Max
	}
	if value, _, ok := layers.Value(queue.FieldRate); ok {
		l.rates[key] = newRate(value.Rate)
	}
}

// cloneLayers copies layers, because the caller of the store may change the result.
func cloneLayers(l queue.Layers) queue.Layers {
	l.Program.From, l.Operator.From = maps.Clone(l.Program.From), maps.Clone(l.Operator.From)
	return l
}

// clonePause copies a pause, because callers of the store own their arguments and
// results.
func clonePause(p *queue.Pause) *queue.Pause {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}

// validateKey checks the key of a change of settings; "" stands for the queue itself.
func validateKey(key string) error {
	if key == "" {
		return nil
	}
	return checkName("key", key)
}

// validateName checks the name of a queue; "" stands for all queues.
func validateName(name string) error {
	if name == "" {
		return nil
	}
	return checkName("queue", name)
}
