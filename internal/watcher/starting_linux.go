package watcher

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/internal/proc"
)

// starting are the jobs, by their numbers, that were being started when stint
// ended. Between the fork and the moment when stint stores the group's ID, a job
// may have started processes of its own. All of them have the number of the job and
// the name of the run in their environment, unless they have cleared it in that moment.
type starting struct {
	run  []byte // the environment entry that only processes of the run have
	jobs map[string]struct{}

	groups map[int]bool // gets the groups of those that are killed
}

// looks is the maximum number of times that killAll looks for processes, in case some
// cannot be killed. clean is the number of looks in a row that must find none: a process
// that is just executing another program has no environment for that moment.
const (
	looks = 100
	clean = 3
)

// killAll kills the processes of the jobs until there are none: while it looks
// at one process, another may start a third.
func (s *starting) killAll() {
	for look, none := 0, 0; look < looks && none < clean; look++ {
		if none++; s.killSeen() {
			none = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// killSeen kills the processes that exist now, and reports whether there were any.
func (s *starting) killSeen() (seen bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false // the kernel kills the leaders in any case
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Processes that end meanwhile, or whose environment is not readable, are not of
		// the jobs.
		if environ, err := os.ReadFile("/proc/" + entry.Name() + "/environ"); err == nil && s.has(environ) {
			if group, err := unix.Getpgid(pid); err == nil {
				s.groups[group] = true
			}
			_ = unix.Kill(pid, unix.SIGKILL)
			seen = true
		}
	}
	return seen
}

// has reports whether an environment is that of one of the jobs.
func (s *starting) has(environ []byte) bool {
	ofRun, ofJob := false, false
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		ofRun = ofRun || bytes.Equal(variable, s.run)
		if seq, ok := bytes.CutPrefix(variable, []byte(proc.EnvSeq)); ok {
			_, ofJob = s.jobs[string(seq)]
		}
	}
	return ofRun && ofJob
}
