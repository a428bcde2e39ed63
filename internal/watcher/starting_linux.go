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
// ended. Between the fork and the moment when stint's thread runs again and
// writes the group's number down, a job may have started processes of its own.
// All of them have in their environment which job of which run they are, unless
// they have emptied it in that moment.
type starting struct {
	run  []byte // the variable that only the processes of the run have
	jobs map[string]struct{}
}

// looks bounds how often killAll looks for processes, in case some cannot be
// killed. clean is how many looks in a row have to find none: a process that is
// just executing another program has no environment for that moment.
const (
	looks = 100
	clean = 3
)

// killAll kills the processes of the jobs until there are none: while it looks
// at one, another may start a third.
func (s *starting) killAll() {
	for look, none := 0, 0; look < looks && none < clean; look++ {
		if none++; s.killSeen() {
			none = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// killSeen kills the processes that are there, and reports whether any was.
func (s *starting) killSeen() (seen bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false // the leaders end all the same: the kernel sees to that
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// What ends meanwhile, or is not ours to look at, is none of the jobs.
		if environ, err := os.ReadFile("/proc/" + entry.Name() + "/environ"); err == nil && s.has(environ) {
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
