package proc

import (
	"slices"
	"strconv"
	"strings"
)

// The variables that every job finds in its environment.
const (
	envSeq  = "STINT_SEQ="  // the job's number, from 1
	envSlot = "STINT_SLOT=" // the slot that it runs on, from 1
)

// Env makes environments of jobs.
type Env struct{ base []string }

// NewEnv returns the environments that add to base. Variables of a stint that
// this one runs under are left out.
func NewEnv(base []string) Env {
	return Env{slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		return strings.HasPrefix(entry, envSeq) || strings.HasPrefix(entry, envSlot)
	})}
}

// Append appends the environment of a job to dst.
func (e Env) Append(dst []string, seq, slot int) []string {
	dst = append(dst, e.base...)
	return append(dst, envSeq+strconv.Itoa(seq), envSlot+strconv.Itoa(slot))
}
