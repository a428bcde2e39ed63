package run

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stintgo/stint/internal/command"
)

// Programs are the runners, built or found.
type Programs struct {
	dir      string // for job logs and sockets
	stint    string
	forkLoop string
}

// Prepare builds the program and the fork loop into dir, and sees to it that
// the other runners are installed.
func Prepare(dir string) (*Programs, error) {
	if err := command.Need("xargs:findutils", "tsp:task-spooler", "parallel:parallel"); err != nil {
		return nil, err
	}
	root, err := command.Root()
	if err != nil {
		return nil, err
	}
	p := &Programs{dir: dir, stint: filepath.Join(dir, "stint"), forkLoop: filepath.Join(dir, "forkloop")}
	if _, err := command.Run(root, nil, "go", "build", "-o", p.stint, "./cmd/stint"); err != nil {
		return nil, err
	}
	if _, err := command.Run("", nil, "go", "build", "-o", p.forkLoop, "./run/forkloop"); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Programs) runStint(n int) error {
	return feed(n, p.stint, "run", "-j", "2", "/bin/true")
}

// runStintLogged takes a new log each time, and reads in it that nothing was
// left out.
func (p *Programs) runStintLogged(n int) error {
	return p.withLog(n, func(log string) error {
		return feed(n, p.stint, "run", "-j", "2", "--joblog", log, "/bin/true")
	})
}

func (p *Programs) runForkLoop(n int) error {
	return feed(0, p.forkLoop, strconv.Itoa(n), "2", "/bin/true")
}

func (p *Programs) runXargs(n int) error {
	return feed(n, "xargs", "-r", "-P", "2", "-n", "1", "/bin/true")
}

func (p *Programs) runParallel(n int) error {
	return feed(n, "parallel", "-j", "2", "/bin/true")
}

func (p *Programs) runParallelLogged(n int) error {
	return p.withLog(n, func(log string) error {
		return feed(n, "parallel", "-j", "2", "--joblog", log, "/bin/true")
	})
}

// runTaskSpooler submits from a shell, which is how that queue is filled, and
// waits for the last job. Its server is our own, by the name of its socket.
func (p *Programs) runTaskSpooler(n int) error {
	script := fmt.Sprintf(`
		export TS_SOCKET=%s TS_SLOTS=2 TS_MAXFINISHED=10
		trap 'tsp -K' EXIT
		for i in $(seq %d); do tsp -n /bin/true >&2 || exit; done
		tsp -w`, filepath.Join(p.dir, "spooler"), n)
	return feed(0, "sh", "-c", script)
}

func (p *Programs) stintVersion() error { return feed(0, p.stint, "version") }

func (p *Programs) runTrue() error { return feed(0, "/bin/true") }

func (p *Programs) withLog(n int, work func(log string) error) error {
	log := filepath.Join(p.dir, "joblog")
	defer func() { _ = os.Remove(log) }()
	if err := work(log); err != nil {
		return err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	if lines := bytes.Count(text, []byte("\n")); lines < n {
		return fmt.Errorf("the job log has %d lines for %d jobs", lines, n)
	}
	return nil
}

// feed runs a command with n numbered lines of input.
func feed(n int, name string, args ...string) error {
	var input bytes.Buffer
	for i := range n {
		fmt.Fprintln(&input, i)
	}
	_, err := command.Run("", &input, name, args...)
	return err
}

// started is how many processes and threads the kernel has made since it was
// started.
func started() (int, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "processes "); ok {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, errors.New("/proc/stat does not count processes")
}
