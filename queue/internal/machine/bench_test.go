package machine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// BenchmarkLife is one task from its submission to its success, at several lengths of the
// queue behind it.
func BenchmarkLife(b *testing.B) {
	for _, pending := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			m, err := machine.Open(newRows(), machine.Config{})
			if err != nil {
				b.Fatal(err)
			}
			var ids queue.IDs
			fill(b, m, &ids, pending)
			now := start
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				live(b, m, &ids, now)
			}
		})
	}
}

// fill submits n tasks.
func fill(b *testing.B, m *machine.Machine, ids *queue.IDs, pending int) {
	b.Helper()
	const chunk = 100
	for pending > 0 {
		tasks := make([]queue.NewTask, min(chunk, pending))
		for i := range tasks {
			tasks[i] = newTask(ids, queue.Spec{Payload: []byte("0123456789abcdef")})
		}
		submitAll(b, m, tasks)
		pending -= len(tasks)
	}
}

// live submits a task, and claims and settles the first one.
func live(b *testing.B, m *machine.Machine, ids *queue.IDs, now time.Time) {
	b.Helper()
	task := newTask(ids, queue.Spec{Payload: []byte("0123456789abcdef")})
	if _, err := m.Submit(b.Context(), now, []queue.NewTask{task}); err != nil {
		b.Fatal(err)
	}
	c, err := m.Claim(b.Context(), now, queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute})
	if err != nil || len(c.Tasks) != 1 {
		b.Fatal(err, len(c.Tasks))
	}
	done := queue.Outcome{ID: c.Tasks[0].ID, Token: c.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess}
	if answers, err := m.Settle(b.Context(), now, []queue.Outcome{done}); err != nil || answers[0] != nil {
		b.Fatal(err, answers)
	}
}

// The benchmarks below do one thing in stores of several sizes. It takes about the same
// time in all of them, or the comment says what it grows with.

func sizes() []int { return []int{1000, 100_000} }

func opened(b *testing.B) *machine.Machine {
	b.Helper()
	m, err := machine.Open(newRows(), machine.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func BenchmarkFindPage(b *testing.B) {
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, ids := opened(b), queue.IDs{}
			fill(b, m, &ids, size)
			after := queue.Page{After: ids.New(start), Newest: true}
			for b.Loop() {
				if found, err := m.Find(b.Context(), queue.Filter{Queue: "default"}, after); err != nil || len(found) != 100 {
					b.Fatal(err, len(found))
				}
			}
		})
	}
}

// BenchmarkFindHeld finds a task that is held by many predecessors: the time is linear in their
// number.
func BenchmarkFindHeld(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, ids := opened(b), queue.IDs{}
			tasks := make([]queue.NewTask, size+1)
			for i := range tasks {
				tasks[i] = newTask(&ids, queue.Spec{})
			}
			for i := range size {
				tasks[size].After = append(tasks[size].After, tasks[i].ID)
			}
			if _, err := m.Submit(b.Context(), start, tasks); err != nil {
				b.Fatal(err)
			}
			last := queue.Filter{IDs: []queue.ID{tasks[size].ID}}
			for b.Loop() {
				if found, err := m.Find(b.Context(), last, queue.Page{}); err != nil || len(found[0].Holds) != size {
					b.Fatal(err, found)
				}
			}
		})
	}
}

// BenchmarkFindNames reports the time for one name.
func BenchmarkFindNames(b *testing.B) {
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, ids := opened(b), queue.IDs{}
			f := queue.Filter{IDs: make([]queue.ID, size)}
			for i := range f.IDs {
				f.IDs[i] = ids.New(start)
			}
			for b.Loop() {
				if _, err := m.Find(b.Context(), f, queue.Page{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(size), "ns/name")
		})
	}
}

// filled returns a machine with size tasks of the specs that spec returns.
func filled(b *testing.B, size int, spec func(i int) queue.Spec) (m *machine.Machine, all []queue.ID) {
	b.Helper()
	m, ids := opened(b), queue.IDs{}
	tasks := make([]queue.NewTask, size)
	for i := range tasks {
		tasks[i] = newTask(&ids, spec(i))
		all = append(all, tasks[i].ID)
	}
	submitAll(b, m, tasks)
	return m, all
}

// perTask runs a function once over all tasks of new machines, and reports the time for
// one task.
func perTask(b *testing.B, size int,
	fresh func() (*machine.Machine, []queue.ID), all func(*machine.Machine, []queue.ID),
) {
	b.Helper()
	var took time.Duration
	for b.Loop() {
		m, ids := fresh()
		b.StopTimer()
		from := time.Now()
		all(m, ids)
		took += time.Since(from)
		b.StartTimer()
	}
	b.ReportMetric(float64(took)/float64(b.N)/float64(size), "ns/task")
}

// submitAll submits any number of tasks, in calls of the largest size.
func submitAll(b *testing.B, m *machine.Machine, tasks []queue.NewTask) {
	b.Helper()
	for part := range slices.Chunk(tasks, queue.MaxSubmit) {
		if _, err := m.Submit(b.Context(), start, part); err != nil {
			b.Fatal(err)
		}
	}
}

func command(b *testing.B, m *machine.Machine, do queue.Order, f queue.Filter, want int) {
	b.Helper()
	if n, err := m.Command(b.Context(), start, queue.Command{Do: do, Filter: f}); err != nil || n != want {
		b.Fatalf("%s changed %d tasks, error %v, want %d", do, n, err, want)
	}
}

// BenchmarkCancelGroup cancels a FIFO group, one by one from its end.
func BenchmarkCancelGroup(b *testing.B) {
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			perTask(b, size, func() (*machine.Machine, []queue.ID) {
				return filled(b, size, func(int) queue.Spec { return queue.Spec{Options: queue.Options{Group: "g"}} })
			}, func(m *machine.Machine, ids []queue.ID) {
				for i := range ids {
					command(b, m, queue.OrderCancel, queue.Filter{IDs: ids[len(ids)-1-i : len(ids)-i]}, 1)
				}
			})
		})
	}
}

// BenchmarkForgetDependency forgets a task that all others wait for.
func BenchmarkForgetDependency(b *testing.B) {
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			perTask(b, size, func() (m *machine.Machine, all []queue.ID) {
				var first queue.ID
				m, ids := opened(b), queue.IDs{}
				tasks := make([]queue.NewTask, size)
				for i := range tasks {
					tasks[i] = newTask(&ids, queue.Spec{})
					if i == 0 {
						first = tasks[i].ID
					} else {
						tasks[i].After = []queue.ID{first}
					}
				}
				submitAll(b, m, tasks)
				command(b, m, queue.OrderCancel, queue.Filter{IDs: []queue.ID{first}}, 1)
				return m, []queue.ID{first}
			}, func(m *machine.Machine, first []queue.ID) {
				command(b, m, queue.OrderForget, queue.Filter{IDs: first}, 1)
			})
		})
	}
}

// BenchmarkSubmitAfter submits tasks that come after many others, and reports the time for one
// predecessor of one task.
func BenchmarkSubmitAfter(b *testing.B) {
	const size = 100
	for _, after := range []int{10, 1000} {
		b.Run(fmt.Sprint(after), func(b *testing.B) {
			perTask(b, size*after, func() (*machine.Machine, []queue.ID) {
				return filled(b, after, func(int) queue.Spec { return queue.Spec{} })
			}, func(m *machine.Machine, first []queue.ID) {
				var ids queue.IDs
				tasks := make([]queue.NewTask, size)
				for i := range tasks {
					tasks[i] = newTask(&ids, queue.Spec{Options: queue.Options{After: first}})
				}
				submitAll(b, m, tasks)
			})
		})
	}
}

// BenchmarkRetryFromTheMiddle retries dead tasks, the last first, in reverse of the order
// in which they are forgotten.
func BenchmarkRetryFromTheMiddle(b *testing.B) {
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			perTask(b, size, func() (*machine.Machine, []queue.ID) {
				m, ids := filled(b, size, func(int) queue.Spec { return queue.Spec{} })
				command(b, m, queue.OrderCancel, queue.Filter{Queue: "default"}, size)
				return m, ids
			}, func(m *machine.Machine, ids []queue.ID) {
				for i := range ids {
					command(b, m, queue.OrderRetry, queue.Filter{IDs: ids[len(ids)-1-i : len(ids)-i]}, 1)
				}
			})
		})
	}
}

// BenchmarkStats is for a queue in which each task has a key that is at its limit.
func BenchmarkStats(b *testing.B) {
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, _ := filled(b, size, func(i int) queue.Spec { return queue.Spec{Options: queue.Options{Key: fmt.Sprint(i / 2)}} })
			if err := m.Configure(b.Context(), start, "default", queue.Change{Set: queue.Settings{PerKey: 1}}); err != nil {
				b.Fatal(err)
			}
			claim := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: size, Lease: time.Minute}
			if c, err := m.Claim(b.Context(), start, claim); err != nil || len(c.Tasks) != size/2 {
				b.Fatal(err, len(c.Tasks))
			}
			for b.Loop() {
				if _, err := m.Stats(b.Context(), start); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkClaimNothing is for a queue in which all keys wait for their rates.
func BenchmarkClaimNothing(b *testing.B) {
	slow := queue.Settings{KeyRate: queue.Rate{PerSecond: 0.001}}
	for _, size := range sizes() {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, _ := filled(b, size, func(i int) queue.Spec { return queue.Spec{Options: queue.Options{Key: fmt.Sprint(i / 2)}} })
			if err := m.Configure(b.Context(), start, "default", queue.Change{Set: slow}); err != nil {
				b.Fatal(err)
			}
			claim := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: size, Lease: time.Minute}
			if c, err := m.Claim(b.Context(), start, claim); err != nil || len(c.Tasks) != size/2 {
				b.Fatal(err, len(c.Tasks))
			}
			for b.Loop() {
				if c, err := m.Claim(b.Context(), start, claim); err != nil || len(c.Tasks) > 0 || c.Next.IsZero() {
					b.Fatal(err, c)
				}
			}
		})
	}
}
