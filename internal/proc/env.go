//go:build unix

package proc

import (
	"slices"
	"strconv"
	"strings"
)

// The variables that are in the environment of every job.
const (
	EnvSeq  = "STINT_SEQ="  // the job's number, from 1
	envSlot = "STINT_SLOT=" // the slot that the job runs on, from 1
	EnvRun  = "STINT_RUN="  // the run that the job belongs to
)

// Env makes the environments of jobs.
type Env struct{ base []string }

// NewEnv returns the environments for the jobs of a run, which add to base. They leave
// out the variables of an outer stint that runs this one.
func NewEnv(base []string, run string) Env {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		return strings.HasPrefix(entry, EnvSeq) || strings.HasPrefix(entry, envSlot) || strings.HasPrefix(entry, EnvRun)
	})
	return Env{append(env, EnvRun+run)}
}

// Merge combines environments. Of several entries for a variable only the last one is
// kept, as programs do not agree on which of them applies.
func Merge(parts ...[]string) []string {
	all := slices.Concat(parts...)
	seen := make(map[string]struct{}, len(all))
	merged := make([]string, 0, len(all))
	for _, entry := range slices.Backward(all) {
		name, _, _ := strings.Cut(entry, "=")
		if _, known := seen[name]; !known {
			seen[name] = struct{}{}
			merged = append(merged, entry)
		}
	}
	slices.Reverse(merged)
	return merged
}

// Append appends the environment of a job to dst.
func (e Env) Append(dst []string, seq, slot int) []string {
	dst = append(dst, e.base...)
	return append(dst, EnvSeq+strconv.Itoa(seq), envSlot+strconv.Itoa(slot))
}
