package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// settingSet is the settings of each queue, and the defaults of all queues under the
// name "", in memory and in a row for each name, and one for each key that has limits of its
// own under a name, so that the cost of a change does not grow with their number. Each name has two layers: that of
// programs and that of operators. settingSet applies the settings to the queues and to
// the limits over all queues. The limits of single keys under "" are in one place, which
// all queues share, so that the cost of a change is linear in the number of keys and in
// that of queues, and not in their product. The caller of each method holds the lock of the machine.
type settingSet struct {
	cfg       *Config
	clock     *clock
	journal   *journal.Journal
	keyRates  *keyRates
	keyTotals *keyTotals
	queues    *queueSet
	states    *stateIndex
	total     *total

	byName   map[string]queue.Configured
	versions uint64      // the last version given to settings
	totals   queue.Layer // in force for all queues together
}

// loaded applies the settings that load has read.
func (s *settingSet) loaded() {
	s.configureTotals()
	for key, layers := range s.byName[""].Keys {
		s.queues.keyLimits.set(key, layers)
	}
}

// configureTotals applies the settings for all queues together.
func (s *settingSet) configureTotals() {
	all := s.byName[""]
	s.totals = inForce(&all, &queue.Configured{}, totalFields())
	s.total.configure(s.totals.Total)
	s.configureKeyTotals(all.Keys)
}

// totalFields returns the fields that apply to all queues together.
func totalFields() []queue.Field { return []queue.Field{queue.FieldTotal, queue.FieldTotalPerKey} }

// configureKeyTotals applies the limits of keys in all queues together.
func (s *settingSet) configureKeyTotals(keys map[string]queue.Layers) {
	var own map[string]int
	for key, layers := range keys {
		if value, _, ok := layers.Value(queue.FieldTotal); ok {
			if own == nil {
				own = make(map[string]int)
			}
			own[key] = value.Total
		}
	}
	s.keyTotals.configure(s.totals.TotalPerKey, own, s.states.leases.all, s.queues.byName)
}

// alter applies a change to the settings under a name, unless it changes nothing.
func (s *settingSet) alter(name string, c *queue.Change) error {
	is := s.byName[name]
	from := queue.Origin{Operator: c.Operator, By: c.By, At: s.clock.time(), Default: name == ""}
	layers := is.Layers
	if c.Key != "" {
		layers = is.Keys[c.Key]
	}
	if !changeLayer(&layers, c, from) {
		return nil // whatever the version is: the call may repeat one that succeeded
	}
	if c.Version != 0 && c.Version != is.Version {
		return fmt.Errorf("%w: the settings of queue %q have version %d, and not %d: read them again",
			queue.ErrChanged, name, is.Version, c.Version)
	}
	s.versions++
	is.Version = s.versions
	if c.Key != "" {
		return s.alterKey(name, is, c.Key, layers)
	}
	is.Layers = layers
	if err := s.store(name, is); err != nil {
		return err
	}
	s.apply(name)
	return nil
}

// alterKey sets the limits of a key to layers, and the settings under a name otherwise to is.
func (s *settingSet) alterKey(name string, is queue.Configured, key string, layers queue.Layers) error {
	before := is.Keys[key]
	value, err := encodeLayers(name, key, layers)
	if err == nil {
		err = setKey(&is, key, layers)
	}
	if err == nil {
		err = s.store(name, is)
	}
	if err != nil {
		return err
	}
	s.journal.Set(keyLimitRow(name, key), value, false)
	if name != "" {
		s.configureOwnKey(s.queues.get(name), key, layers)
		return nil
	}
	was, _, had := before.Value(queue.FieldTotal)
	if is, _, has := layers.Value(queue.FieldTotal); was.Total != is.Total || had != has {
		s.configureKeyTotals(s.byName[""].Keys)
	}
	s.configureKey(key, layers)
	return nil
}

// encodeLayers returns the value of the row of the limits of a key, nil without limits.
func encodeLayers(name, key string, l queue.Layers) ([]byte, error) {
	if l.Program.From == nil && l.Operator.From == nil {
		return nil, nil
	}
	value, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("%w: settings of key %q of queue %q: %w", queue.ErrInvalid, key, name, err)
	}
	return value, nil
}

// keyLimitRow is the key of the row of the limits of a key.
func keyLimitRow(name, key string) string { return rowKeyLimit + name + "\x00" + key }

// store stores the settings under a name in memory and, except those of keys, in their row.
func (s *settingSet) store(name string, is queue.Configured) error {
	row := settingsRow{
		Settings: queue.Settings{Paused: is.Paused}, Version: is.Version,
		Program: is.Program, Operator: is.Operator,
	}
	if len(is.Keys) > 0 {
		row.Keys = json.RawMessage(keysApart)
	}
	value, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("%w: settings of queue %q: %w", queue.ErrInvalid, name, err)
	}
	if s.byName[name] = is; !isSet(&is) {
		delete(s.byName, name)
		value = nil
	}
	s.journal.Set(rowSettings+name, value, false)
	return nil
}

// apply applies the settings under a name, except those of single keys in each queue.
func (s *settingSet) apply(name string) {
	if name != "" {
		s.configure(s.queues.get(name))
		return
	}
	s.configureTotals()
	for _, q := range s.queues.numbered { // in a reproducible order, for forgetting
		if q != nil {
			s.configure(q)
		}
	}
}

// configureOwnKey applies the settings of one key of a queue. A rate that has changed begins anew.
func (s *settingSet) configureOwnKey(q *queueState, key string, layers queue.Layers) {
	before := q.limits.rateOfKey(key)
	q.limits.own.set(key, layers)
	if q.limits.rateOfKey(key) != before {
		s.keyRates.reset(q, key)
	}
	q.order.Keys().Review(key)
	q.signal()
}

// configureKey applies the settings of one key in each queue. A rate that has changed begins
// anew.
func (s *settingSet) configureKey(key string, layers queue.Layers) {
	shared := &s.queues.keyLimits
	before, had := shared.rates[key]
	shared.set(key, layers)
	for _, q := range s.queues.byName {
		was := q.limits.keyRate
		if had {
			was = before
		}
		if _, own := q.limits.own.rates[key]; !own && q.limits.rateOfKey(key) != was {
			s.keyRates.reset(q, key)
		}
		q.order.Keys().Review(key)
		q.signal()
	}
}

// setPause pauses a queue, or resumes it if p is nil.
func (s *settingSet) setPause(name string, p *queue.Pause) error {
	is := s.byName[name]
	if is.Paused = clonePause(p); p != nil && p.Since.IsZero() {
		is.Paused.Since = s.clock.time()
	}
	if err := s.store(name, is); err != nil {
		return err
	}
	s.apply(name)
	return nil
}

// view returns a copy of all settings, with the values in force.
func (s *settingSet) view() map[string]queue.Configured {
	all := make(map[string]queue.Configured, len(s.byName))
	defaults := s.byName[""]
	for name, is := range s.byName {
		fields := queueFields()
		if name == "" {
			fields = queue.Fields()
		}
		is.InForce = inForce(&is, &defaults, fields)
		is.InForce.Paused, is.Paused = clonePause(is.InForce.Paused), clonePause(is.Paused)
		is.Layers = cloneLayers(is.Layers)
		is.Keys = maps.Clone(is.Keys)
		for key, layers := range is.Keys {
			is.Keys[key] = cloneLayers(layers)
		}
		all[name] = is
	}
	return all
}

// load reads the rows of all settings.
func (s *settingSet) load() error {
	s.versions = uint64(s.cfg.Epoch) << versionShift
	defer s.loaded()     // before tasks are loaded
	var earlier []string // names whose rows have the limits of keys
	err := s.journal.Stored().Scan(rowSettings, func(key string, value []byte) error {
		var row settingsRow
		err := json.Unmarshal(value, &row)
		if err != nil {
			return fmt.Errorf("the settings of queue %q: %w", key, err)
		}
		is := queue.Configured{
			Layers: queue.Layers{Program: row.Program, Operator: row.Operator},
			Paused: row.Paused, Version: row.Version,
		}
		if is.Keys, err = row.keys(); err != nil {
			return fmt.Errorf("the settings of queue %q: %w", key, err)
		}
		if len(is.Keys) > 0 {
			earlier = append(earlier, key)
		}
		row.Paused = nil
		if old := (queue.Change{Set: row.Settings}); old.Set != (queue.Settings{}) { // see settingsRow
			changeLayer(&is.Layers, &old, queue.Origin{Default: key == ""})
			is.Version = max(is.Version, 1)
		}
		s.versions = max(s.versions, is.Version)
		s.byName[key] = is
		return nil
	})
	if err == nil {
		err = s.journal.Stored().Scan(rowKeyLimit, s.loadKey)
	}
	for _, name := range earlier {
		err = errors.Join(err, s.convert(name))
	}
	return err
}

// loadKey reads the row of the limits of a key, whose key is rowKeyLimit and rest.
func (s *settingSet) loadKey(rest string, value []byte) error {
	name, key, ok := strings.Cut(rest, "\x00")
	if !ok {
		return fmt.Errorf("%w: the row %q of the limits of a key names no queue", record.ErrCorrupt, rest)
	}
	var layers queue.Layers
	if err := json.Unmarshal(value, &layers); err != nil {
		return fmt.Errorf("%w: the limits of key %q of queue %q: %w", record.ErrCorrupt, key, name, err)
	}
	is := s.byName[name]
	err := setKey(&is, key, layers)
	s.byName[name] = is
	return err
}

// convert writes the settings under a name, which an earlier version has written in one row.
func (s *settingSet) convert(name string) error {
	is := s.byName[name]
	for _, key := range slices.Sorted(maps.Keys(is.Keys)) {
		value, err := encodeLayers(name, key, is.Keys[key])
		if err != nil {
			return err
		}
		s.journal.Set(keyLimitRow(name, key), value, false)
	}
	return s.store(name, is)
}

// configure applies settings to a queue: its own, else the defaults, except those of single
// keys in each queue. A pause of all queues pauses each queue. A rate that has changed begins
// anew.
func (s *settingSet) configure(q *queueState) {
	before := q.limits
	own, all := s.byName[q.name], s.byName[""]
	q.configure(inForce(&own, &all, queueFields()), keyLimitsOf(own.Keys))
	if perKey := q.limits.keyRate != before.keyRate; perKey || !maps.Equal(q.limits.own.rates, before.own.rates) {
		for key := range q.keys {
			if perKey || q.limits.rateOfKey(key) != before.rateOfKey(key) {
				s.keyRates.reset(q, key)
			}
		}
	}
	if q.limits.rate != before.rate {
		q.arrival = fixed{} // starts at the old rate do not count against the new one
	}
	s.queues.review(q)
	q.signal()
}

// originOf returns the origin of a limit that a key of a queue has.
func (s *settingSet) originOf(q *queueState, key string, own, perKey queue.Field) queue.Origin {
	for _, name := range []string{q.name, ""} {
		layers := s.byName[name].Keys[key]
		if _, from, ok := layers.Value(own); ok {
			return from
		}
	}
	return q.inForce.From[perKey]
}

// pendingLimit returns how many unfinished tasks a queue may have, 0 for no limit, and
// how many it has. It does not add the queue.
func (s *settingSet) pendingLimit(name string) (limit, unfinished int) {
	if q := s.queues.byName[name]; q != nil {
		return q.settings.Pending, q.unfinished()
	}
	own, all := s.byName[name], s.byName[""]
	return inForce(&own, &all, []queue.Field{queue.FieldPending}).Pending, 0
}

// keysWithLimits returns the running tasks of each key of a queue that has limits of its
// own in that queue.
func (s *settingSet) keysWithLimits(q *queueState) (running map[string]int) {
	for key := range s.byName[q.name].Keys {
		if running == nil {
			running = make(map[string]int)
		}
		running[key] = q.order.Keys().Running(key)
	}
	return running
}

// addRunningKeys adds, to the counts of each queue, the running tasks of the keys that have
// limits of their own in each queue. The cost is linear in the number of running tasks.
func (s *settingSet) addRunningKeys(all map[string]queue.Counts) {
	limited := s.byName[""].Keys
	if len(limited) == 0 {
		return
	}
	for _, e := range s.states.leases.all {
		q, key := s.queues.of(e.of), e.of.lease.row.Key
		if _, ok := limited[key]; !ok {
			continue
		}
		c := all[q.name]
		if c.Keys == nil {
			c.Keys = make(map[string]int)
			all[q.name] = c
		}
		c.Keys[key] = q.order.Keys().Running(key)
	}
}

// keysWithTotals returns the running tasks, in all queues together, of each key that
// has a total of its own.
func (s *settingSet) keysWithTotals() (running map[string]int) {
	for key := range s.keyTotals.own {
		if running == nil {
			running = make(map[string]int)
		}
		running[key] = 0
		if of := s.keyTotals.keys[key]; of != nil {
			running[key] = of.running
		}
	}
	return running
}
