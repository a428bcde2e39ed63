package sched

// jobs is what is known of how long functions run: those that workers run, of which the
// engine sees the beginning and the end; and with [Config.Holders], all that has slots.
type jobs struct {
	running int               // functions that run
	begun   [keptStarts]int64 // a ring: when the last ones began
	next    int               // in it
	samples float64           // of how long a function has run, at most keptSamples
	mean    float64           // of them, in nanoseconds
	square  float64           // the mean of their squares
}

const (
	keptStarts  = 64
	keptSamples = 64
)

func (j *jobs) begin(at int64) {
	j.running++
	j.begun[j.next%keptStarts] = at
	j.next++
}

// sample takes into account how long a function has run.
func (j *jobs) sample(ran int64) {
	x := float64(ran)
	j.samples = min(j.samples+1, keptSamples)
	j.mean += (x - j.mean) / j.samples
	j.square += (x*x - j.square) / j.samples
}

// last returns when the last n functions began; n is at most keptStarts.
func (j *jobs) last(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = j.begun[(j.next-n+i)%keptStarts]
	}
	return all
}
