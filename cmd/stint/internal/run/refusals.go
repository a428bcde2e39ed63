package run

import "fmt"

// refusals counts inputs that cannot be made into a command. It reports the first in full
// and the others as a number: a list with one bad line often has only bad lines, and a
// hundred thousand messages would hide everything else.
type refusals struct {
	say func(string)
	n   int
}

// note counts an input, and reports it if it is the first.
func (s *refusals) note(j *job, err error) {
	if s.n++; s.n == 1 {
		s.say(fmt.Sprintf("input %d (%s): %v", j.Seq, brief(j.tag()), err))
	}
}

// sum reports the number of refused inputs, if there are several.
func (s *refusals) sum() {
	if s.n > 1 {
		s.say(fmt.Sprintf("%d inputs in all could not be made into jobs", s.n))
	}
}
