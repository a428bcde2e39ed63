package run

import "fmt"

// refusals counts inputs that no command can be made of. The first is told of in
// full: a list that is wrong in one line is mostly wrong in all, and a hundred
// thousand messages would hide everything else.
type refusals struct {
	say func(string)
	n   int
}

// note takes one.
func (s *refusals) note(j *job, err error) {
	if s.n++; s.n == 1 {
		s.say(fmt.Sprintf("input %d (%s): %v", j.Seq, brief(j.tag()), err))
	}
}

// sum tells of the others.
func (s *refusals) sum() {
	if s.n > 1 {
		s.say(fmt.Sprintf("%d inputs in all could not be made into jobs", s.n))
	}
}
