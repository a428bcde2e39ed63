package sched //nolint:testpackage // the order is compared without functions that run

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
)

// resumesModel is resumes as a list that is searched.
type resumesModel struct {
	all  []*entry
	room map[string]bool
}

func (m *resumesModel) hasRoom(x *entry) bool { return m.room[x.Key] }

func (m *resumesModel) first() *entry {
	if i := slices.IndexFunc(m.all, m.hasRoom); i >= 0 {
		return m.all[i]
	}
	return nil
}

func (m *resumesModel) size() (s resumeSize) {
	for _, x := range m.all {
		if m.hasRoom(x) {
			s.n++
			s.tiers[x.Tier]++
		}
	}
	return s
}

func (m *resumesModel) highest() int {
	tier := -1
	for _, x := range m.all {
		if m.hasRoom(x) {
			tier = max(tier, int(x.Tier))
		}
	}
	return tier
}

// The functions that wait to resume go in order, except that those whose key has no room are passed
// over. What is counted of the others is what a search finds.
func TestModel_ResumesMatchASearchedList(t *testing.T) {
	rnd := seeded.Rand(t)
	keys := []string{"", "a", "b", "c", "d", "e"}
	m := resumesModel{room: map[string]bool{}}
	for _, key := range keys {
		m.room[key] = true
	}
	r := resumes{keys: make(map[string]*keyResumes)}
	for step := range 200_000 {
		key, first := keys[rnd.IntN(len(keys))], m.first()
		adds, n := 3+step/1000%2, rnd.IntN(10)
		switch {
		case n < adds:
			x := &entry{use: use{Ask: Ask{Key: key, Weight: 1, Tier: int8(rnd.IntN(Tiers))}}}
			r.add(x, m.room[key])
			m.all = append(m.all, x)
		case n < 8 && first != nil:
			r.drop()
			m.all = slices.DeleteFunc(m.all, func(x *entry) bool { return x == first })
		case key != "":
			m.room[key] = !m.room[key]
			r.turn(key, m.room[key])
		}
		if got, want := r.first(), m.first(); got != want {
			t.Fatalf("step %d: %+v goes first, want %+v", step, got, want)
		}
		if got, want := r.room, m.size(); got != want || r.empty() != (len(m.all) == 0) {
			t.Fatalf("step %d: %+v have room, want %+v; empty: %v of %d", step, got, want, r.empty(), len(m.all))
		}
		if got, want := r.room.highest(), m.highest(); got != want {
			t.Fatalf("step %d: the highest tier is %d, want %d", step, got, want)
		}
	}
}
