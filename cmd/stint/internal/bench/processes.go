package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/retry"
)

// processes measures how many processes of true(1) stint run executes per second,
// compared with a loop that only starts processes and waits for them.
func processes(ctx context.Context, each time.Duration) ([]Row, error) {
	program, err := proc.Look("true")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "stint-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // at worst it is left to the system
	b := spawner{program: program, dir: dir, jobs: runtime.GOMAXPROCS(0)}
	run.SpareProcessor()
	var rows []Row
	var bare float64
	for _, c := range []struct {
		name string
		loop func(n int) error
	}{
		{"true(1), start and wait only", b.bare},
		{"true(1), stint run", b.inMemory},
		{"true(1), stint run with a job log", b.logged},
	} {
		var failed error
		ns := perOp(each, func(n int) {
			if err := c.loop(n); err != nil {
				failed = err
			}
		})
		if failed == nil {
			failed = context.Cause(ctx)
		}
		if failed != nil {
			return nil, failed
		}
		row := Row{Name: c.name, Value: 1e9 / ns, Unit: "/s"}
		if bare == 0 {
			bare = row.Value
			row.Note = fmt.Sprintf("%d at once", b.jobs)
		} else {
			row.Note = fmt.Sprintf("%.2f of it", row.Value/bare)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

type spawner struct {
	program, dir string
	jobs         int
	logs         int
}

// bare only starts processes and waits for them.
func (b *spawner) bare(n int) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }() // never written to
	spec := proc.Spec{
		Path: b.program, Args: []string{b.program}, Env: os.Environ(), Files: [3]*os.File{null, null, null},
	}
	var left atomic.Int64
	left.Store(int64(n))
	errs := make(chan error, b.jobs)
	var wg sync.WaitGroup
	for range b.jobs {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				p, err := proc.Start(&spec)
				if err != nil {
					errs <- err
					return
				}
				p.Wait(nil, nil)
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func (b *spawner) inMemory(n int) error { return b.run(n, nil) }

func (b *spawner) logged(n int) error {
	b.logs++
	log, err := joblog.Open(filepath.Join(b.dir, fmt.Sprint(b.logs)), joblog.Config{})
	if err != nil {
		return err
	}
	err = b.run(n, log)
	if closeErr := log.Close(); err == nil {
		err = closeErr
	}
	return err
}

// run executes n jobs like stint run, with its default grouping of output.
func (b *spawner) run(n int, log *joblog.Log) error {
	command, err := run.NewCommand([]string{b.program}, run.CommandConfig{Shell: run.ShellNever, NoInput: true})
	if err != nil {
		return err
	}
	o := run.Do(&run.Config{
		Command: command,
		Source:  run.Source{Lists: []input.Group{{slices.Repeat([]string{"x"}, n)}}},
		Jobs:    b.jobs, Lookahead: 10_000, Retry: retry.Policy{Attempts: 1},
		Sink:  output.NewSink(os.Stdout, os.Stderr, nil, [2]bool{}),
		Spool: output.NewSpool(""), Log: log, Meter: &progress.Meter{}, Say: func(string) {},
	})
	if o.Err == nil && o.Failed > 0 {
		return fmt.Errorf("%d of %d jobs failed: %s", o.Failed, n, o.First)
	}
	return o.Err
}
