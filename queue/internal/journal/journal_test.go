package journal_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// inMap implements Rows with a map. From batch failAt on, Apply fails; 0 means never.
type inMap struct {
	mu      sync.Mutex
	rows    map[string]string
	batches int
	failAt  int
}

var errBroken = errors.New("broken")

func (r *inMap) Apply(batch []journal.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batches++; r.failAt > 0 && r.batches >= r.failAt {
		return errBroken
	}
	for _, c := range batch {
		if c.Value == nil {
			delete(r.rows, c.Key)
		} else {
			r.rows[c.Key] = string(c.Value)
		}
	}
	return nil
}

func (r *inMap) Get(key string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, ok := r.rows[key]; ok {
		return []byte(value), nil
	}
	return nil, nil
}

func (r *inMap) Scan(from, to string, _ bool, fn func(string, []byte) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.rows)) {
		if from <= key && key < to && !fn(key, []byte(r.rows[key])) {
			break
		}
	}
	return nil
}

func (r *inMap) Close() error { return nil }

// byKeys are rows that read keys by name.
type byKeys struct{ *inMap }

func (r byKeys) ReadKeys(keys []string, most int) (values [][]byte, err error) {
	for _, key := range keys {
		if most <= 0 {
			break
		}
		value, err := r.Get(key)
		if err != nil {
			return values, err
		}
		values, most = append(values, value), most-len(value)
	}
	return values, nil
}

// TestModel checks that Get returns the value that was set last, whatever is applied,
// withdrawn and loaded meanwhile, and that Sync has written it to the rows.
func TestModel(t *testing.T) {
	rnd := seeded.Rand(t)
	for n := range 100 {
		rows, want := &inMap{rows: make(map[string]string)}, make(map[string]string)
		var of journal.Rows = rows
		if n%2 == 0 {
			of = byKeys{rows}
		}
		j := journal.New(of, rnd.IntN(200))
		key := func() string { return fmt.Sprint("t", rnd.IntN(20)) }
		for step := range 200 {
			for range rnd.IntN(4) {
				k, value := key(), fmt.Sprint(step)
				if rnd.IntN(4) == 0 {
					delete(want, k)
					j.Set(k, nil, false)
				} else {
					want[k] = value
					j.Set(k, []byte(value), rnd.IntN(2) == 0)
				}
			}
			mark := j.Seal()
			switch rnd.IntN(4) {
			case 0:
				if err := j.Sync(mark, nil, nil); err != nil || !maps.Equal(rows.rows, want) {
					t.Fatalf("step %d: %v, the rows are %v, want %v", step, err, rows.rows, want)
				}
			case 1:
				j.Load([]string{"t1", "t10", "t15", "t5"})
			case 2:
				k := key()
				if row, ok := j.Withdraw([]byte(k)); ok && string(row.Value) != want[k] {
					t.Fatalf("step %d: withdrawn %s is %q, want %q", step, k, row.Value, want[k])
				}
			}
			if value, err := j.Get("t7"); err != nil || string(value) != want["t7"] {
				t.Fatalf("step %d: t7 is %q, %v, want %q", step, value, err, want["t7"])
			}
		}
	}
}

// TestFails checks that after the first error of the rows every Sync returns it.
func TestFails(t *testing.T) {
	j := journal.New(&inMap{rows: make(map[string]string), failAt: 2}, 0)
	for n := 1; n <= 3; n++ {
		j.Set("t", []byte{byte(n)}, false)
		err := j.Sync(j.Seal(), nil, nil)
		if failed := n >= 2; errors.Is(err, errBroken) != failed || errors.Is(err, queue.ErrUnavailable) != failed {
			t.Fatalf("batch %d: %v", n, err)
		}
	}
	if err := j.Failed(); !errors.Is(err, errBroken) {
		t.Errorf("Failed returns %v", err)
	}
}
