package run

import (
	"os"

	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/internal/watcher"
)

// launcher opens the files of attempts and starts their processes: it knows where programs
// are, which environment and standard input jobs get, and where their output goes. It is
// safe for concurrent use.
type launcher struct {
	cfg      *Config
	registry *registry
	giveUp   <-chan struct{} // closed when the run starts no more jobs
	env      proc.Env
	stdin    *os.File // of jobs without an input of their own
	watcher  *watcher.Watcher
	dirs     *output.Directories
	paths    paths
}

// launch opens the files of an attempt and starts its process.
func (l *launcher) launch(a *attempt) (*proc.Process, error) {
	if err := l.openFiles(a); err != nil {
		return nil, err
	}
	a.ofProgram = true
	var p *proc.Process
	var err error
	p, a.timeout, err = l.registry.launch(a.started, func() (*proc.Process, error) { return l.start(a) })
	if a.lines != nil {
		a.lines.Start()
	}
	return p, err
}

func (l *launcher) start(a *attempt) (*proc.Process, error) {
	argv, err := l.cfg.Command.argv(&a.fill)
	if err != nil {
		return nil, err
	}
	path, err := l.paths.look(&l.cfg.Command, argv)
	if err != nil {
		return nil, err
	}
	return proc.Start(&proc.Spec{
		Path: path, Args: argv, Env: l.env.Append(nil, a.fill.Seq, a.fill.Slot),
		Files: l.files(a), Group: l.watcher.Cell(a.fill.Slot, a.fill.Seq), GiveUp: l.giveUp,
	})
}

// openFiles opens the files that the job reads and writes.
func (l *launcher) openFiles(a *attempt) error {
	if l.cfg.Stdin.Set {
		path, err := l.cfg.Stdin.Path.String(&a.fill)
		if err != nil {
			return err
		}
		if a.stdin, err = os.Open(path); err != nil {
			return err
		}
	}
	if l.cfg.Stdout.Set {
		path, err := l.cfg.Stdout.target(&a.fill)
		if err != nil {
			return err
		}
		if a.redirect, err = l.dirs.Redirect(path); err != nil {
			return err
		}
	}
	return l.openOutput(a)
}

func (l *launcher) openOutput(a *attempt) (err error) {
	stdout := a.redirect == nil
	switch l.cfg.Grouping {
	case Group:
		a.capture, err = l.cfg.Spool.Capture(stdout, true)
	case Lines:
		tag := ""
		if l.cfg.Tag {
			tag = a.job.tag()
		}
		a.lines, err = l.cfg.Sink.Lines(stdout, true, tag)
	case Ungroup:
	}
	return err
}

// files returns the job's standard input, output and error.
func (l *launcher) files(a *attempt) [3]*os.File {
	stdin := a.stdin
	if stdin == nil {
		stdin = l.stdin
	}
	var stdout, stderr *os.File
	switch {
	case a.capture != nil:
		stdout, stderr = a.capture.Files()
	case a.lines != nil:
		stdout, stderr = a.lines.Files()
	default:
		stdout, stderr = l.cfg.Sink.Streams()
	}
	if a.redirect != nil {
		stdout = a.redirect.File()
	}
	return [3]*os.File{stdin, stdout, stderr}
}
