package measure

import (
	"slices"
	"time"
)

// Stage is the environment of one sample of one subject.
type Stage struct {
	// N is how many operations the sample will do in all, for subjects that
	// make room beforehand.
	N int
	// Counting says that the tasks have to be counted one by one: this sample
	// checks that the subject does the work at all, and its time is not used.
	// Counting costs a shared cache line, which would drown an empty task.
	Counting bool
	// Once says that this is one tiny pass, for correctness only.
	Once bool

	cleanups []func()
}

// Cleanup has f called when the sample is over, last added first.
func (st *Stage) Cleanup(f func()) { st.cleanups = append(st.cleanups, f) }

// Size is n, or a small number in a tiny pass.
func (st *Stage) Size(n int) int {
	if st.Once {
		return min(n, 200)
	}
	return n
}

// Span is d, or a twentieth of it in a tiny pass.
func (st *Stage) Span(d time.Duration) time.Duration {
	if st.Once {
		return d / 20
	}
	return d
}

func (st *Stage) close() {
	for _, cleanup := range slices.Backward(st.cleanups) {
		cleanup()
	}
}
