package sched

// jobs records how long functions run: those that workers run, of which the engine sees
// the beginning and the end; with [Config.Holders], all work that has slots.
type jobs struct {
	running int               // functions that run
	begun   [keptStarts]int64 // a ring of the latest start times
	next    int               // index in begun of the next start time
	samples float64           // number of run times in the means, at most keptSamples
	mean    float64           // of run times, in nanoseconds
	square  float64           // the mean of their squares
}

const (
	keptStarts  = 64
	keptSamples = 64
)

func (j *jobs) begin(at int64) {
	j.running++
	j.begun[j.next] = at
	j.next = (j.next + 1) % keptStarts
}

// sample adds the run time of a function, in nanoseconds.
func (j *jobs) sample(ran int64) {
	x := float64(ran)
	j.samples = min(j.samples+1, keptSamples)
	j.mean += (x - j.mean) / j.samples
	j.square += (x*x - j.square) / j.samples
}

// last returns the start times of the last n functions; n is at most keptStarts.
func (j *jobs) last(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = j.begun[(j.next-n+i+keptStarts)%keptStarts]
	}
	return all
}
