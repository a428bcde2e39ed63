package machine_test

import (
	"encoding/json"
	"errors"
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
