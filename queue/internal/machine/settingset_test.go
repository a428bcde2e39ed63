package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// A row that was written before there were layers has the settings of programs, and its
// pause.
func TestC4_SettingsOfOldRows(t *testing.T) {
	r := newRows()
	old := queue.Settings{Max: 4, PerKey: 2, Paused: &queue.Pause{By: "ann", Since: start}}
	value, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Apply([]machine.Change{{Key: "smail", Value: value}}); err != nil {
		t.Fatal(err)
	}
	m := open(t, r)
	first := settingsOf(t, m, "mail")
	want := queue.Settings{Max: 4, PerKey: 2}
	if first.Program.Settings != want || first.Operator.From != nil || first.Paused == nil || first.Version == 0 {
		t.Fatalf("the old row is read as %+v", first)
	}
	change := queue.Change{Operator: true, Set: queue.Settings{Max: 1}, Version: first.Version}
	if err := m.Configure(t.Context(), start, "mail", change); err != nil {
		t.Fatal(err)
	}
	before := settingsOf(t, m, "mail")
	if in := before.InForce; in.Max != 1 || in.PerKey != 2 || in.Paused.By != "ann" {
		t.Errorf("in force is %+v", in)
	}
	if after := settingsOf(t, open(t, r), "mail"); !reflect.DeepEqual(before, after) {
		t.Errorf("opened again, the settings are\n%+v, and were\n%+v", after, before)
	}
}

// The key of a setting is like that of a task: other bytes would be another key in its row.
func TestC4_KeyOfSettingsIsText(t *testing.T) {
	m := open(t, newRows())
	for _, key := range []string{"\xff", "a\x00b", "a\nb", strings.Repeat("k", queue.MaxName+1)} {
		err := m.Configure(t.Context(), start, "mail", queue.Change{Key: key, Set: queue.Settings{Max: 1}})
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "key") {
			t.Errorf("%q: error %v, want ErrInvalid", key, err)
		}
	}
}

// Settings returns copies: a caller may change them.
func TestC4_SettingsThatAreGivenAreTheCallers(t *testing.T) {
	m := open(t, newRows())
	for _, c := range []queue.Change{{Set: queue.Settings{Max: 1}}, {Key: "k", Set: queue.Settings{Max: 1}}} {
		if err := m.Configure(t.Context(), start, "mail", c); err != nil {
			t.Fatal(err)
		}
	}
	got := settingsOf(t, m, "mail")
	want := settingsOf(t, m, "mail")
	clear(got.Program.From)
	clear(got.Keys["k"].Program.From)
	clear(got.Keys)
	if got := settingsOf(t, m, "mail"); !reflect.DeepEqual(want, got) {
		t.Errorf("the settings are\n%+v, want\n%+v", got, want)
	}
}

func settingsOf(t *testing.T, m *machine.Machine, name string) queue.Configured {
	t.Helper()
	all, err := m.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[name]
}

// keyLimit returns a change of the limits of a key.
func keyLimit(key string) queue.Change {
	return queue.Change{Key: key, Set: queue.Settings{Max: 2, Rate: queue.Rate{PerSecond: 5}}}
}

// A change of the limits of one key writes these, and not those of all other keys. A store that is
// opened again has them.
func TestC10_LimitsOfAKeyAreWrittenAlone(t *testing.T) {
	const keys, most = 1000, 1 << 10 // bytes
	for _, name := range []string{"", "mail"} {
		r := &steppedRows{rows: newRows()}
		m := openOn(t, r)
		for i := range keys {
			if err := m.Configure(t.Context(), start, name, keyLimit(fmt.Sprint("key ", i))); err != nil {
				t.Fatal(err)
			}
		}
		unset := queue.Change{Key: "key 7", Unset: []queue.Field{queue.FieldMax, queue.FieldRate}}
		if err := m.Configure(t.Context(), start, name, unset); err != nil {
			t.Fatal(err)
		}
		if r.mostBytes > most {
			t.Errorf("a change of one of %d keys of %q writes %d bytes", keys, name, r.mostBytes)
		}
		before, after := settingsOf(t, m, name), settingsOf(t, open(t, r.crash()), name)
		if !reflect.DeepEqual(before, after) || len(after.Keys) != keys-1 {
			t.Errorf("opened again, %q has the limits of %d keys, and had those of %d", name, len(after.Keys), len(before.Keys))
		}
	}
}

// Limits of keys in the row of their queue, where earlier versions have written them, are read and
// written again in rows of their own. An earlier version does not open the store then, because it
// would ignore them.
func TestC4_LimitsOfKeysOfAnEarlierVersion(t *testing.T) {
	type earlier struct {
		Version uint64                  `json:"version,omitempty"`
		Program queue.Layer             `json:"program,omitzero"`
		Keys    map[string]queue.Layers `json:"keys,omitempty"`
	}
	m := open(t, newRows())
	for _, c := range []queue.Change{{Set: queue.Settings{Max: 4}}, keyLimit("a"), keyLimit("b")} {
		if err := m.Configure(t.Context(), start, "mail", c); err != nil {
			t.Fatal(err)
		}
	}
	want := settingsOf(t, m, "mail")
	value, err := json.Marshal(earlier{want.Version, want.Program, want.Keys})
	if err != nil {
		t.Fatal(err)
	}
	r := newRows()
	if err := r.Apply([]machine.Change{{Key: "smail", Value: value}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := settingsOf(t, open(t, r), "mail"); !reflect.DeepEqual(got, want) {
			t.Errorf("the settings are\n%+v, want\n%+v", got, want)
		}
		if err := json.Unmarshal(r.all["smail"], new(earlier)); err == nil {
			t.Error("an earlier version opens the store without the limits of the keys")
		}
	}
	for _, key := range []string{"a", "b"} {
		unset := queue.Change{Key: key, Unset: []queue.Field{queue.FieldMax, queue.FieldRate}}
		if err := open(t, r).Configure(t.Context(), start, "mail", unset); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(r.all["smail"], new(earlier)); err != nil || len(r.all) != 1 {
		t.Errorf("without limits of keys there are %d rows, and an earlier version cannot open them: %v", len(r.all), err)
	}
}

// The row of the limits of a key that cannot be read is named.
func TestC6_UnreadableLimitsOfAKey(t *testing.T) {
	r := newRows()
	if err := r.Apply([]machine.Change{{Key: "lmail\x00key", Value: []byte("{")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Open(r, machine.Config{}); err == nil ||
		!strings.Contains(err.Error(), `key "key" of queue "mail"`) {
		t.Errorf("error %v, want one that names key and queue", err)
	}
}

// A change of the limit of one key over all queues counts at once, whether it is the first limit of that
// key or replaces one.
func TestC12_TotalOfOneKeyIsChanged(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	for range 5 {
		submit(t, m, newTask(&ids, queue.Spec{Options: queue.Options{Key: "k"}}))
	}
	running := 0
	for _, c := range []struct {
		change queue.Change
		want   int
	}{
		{queue.Change{Key: "k", Set: queue.Settings{Total: 1}}, 1},
		{queue.Change{Key: "k", Set: queue.Settings{Total: 3}}, 3},
		{queue.Change{Key: "k", Unset: []queue.Field{queue.FieldTotal}}, 5},
	} {
		if err := m.Configure(t.Context(), start, "", c.change); err != nil {
			t.Fatal(err)
		}
		if running += len(claim(t, m, 5)); running != c.want {
			t.Errorf("%d tasks of the key run after %+v, want %d", running, c.change, c.want)
		}
	}
}
