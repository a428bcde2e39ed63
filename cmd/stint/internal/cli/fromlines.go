package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

// lineMax is the limit for a line of --from in bytes: a standard input of 1 MiB in
// base64, and as much again for the rest.
const lineMax = 2*serve.StdinMax + serve.StdinMax/2

// taskLine is a line of --from: a task, or an error.
type taskLine struct {
	no   int // line number, from 1
	spec queue.Spec
	err  error // the last line if set
}

// taskLines parses lines as tasks, with flags as defaults.
type taskLines struct {
	base         queue.Spec
	delay        time.Duration
	env          []string
	dir          string
	uniquePrefix string
}

// read sends the lines of r. It closes the channel at the end, after a line with an
// error, or when ctx ends. Empty lines are skipped. A blocked read of more input does not
// end with ctx, but with the process.
func (l *taskLines) read(ctx context.Context, r io.Reader) <-chan taskLine {
	lines := make(chan taskLine)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(r)
		in.Buffer(make([]byte, 0, 64<<10), lineMax)
		no := 0
		send := func(line taskLine) bool {
			select {
			case lines <- line:
				return line.err == nil
			case <-ctx.Done():
				return false
			}
		}
		for in.Scan() {
			no++
			text := bytes.TrimSpace(in.Bytes())
			if len(text) == 0 {
				continue
			}
			line := taskLine{no: no}
			line.spec, line.err = l.parse(text, in.Bytes()[0] == '{', no)
			if !send(line) {
				return
			}
		}
		switch err := in.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			send(taskLine{no: no + 1, err: fmt.Errorf("it is longer than %d bytes", lineMax)})
		case err != nil:
			send(taskLine{no: no + 1, err: err})
		}
	}()
	return lines
}

// parse parses one line.
func (l *taskLines) parse(text []byte, isJSON bool, no int) (spec queue.Spec, err error) {
	spec = l.base
	if l.delay > 0 {
		spec.RunAt = clock.Now().Add(l.delay)
	}
	if isJSON {
		spec, err = l.parseJSON(text, spec)
	} else if spec.Kind != serve.Kind {
		err = fmt.Errorf("a task of --kind %s must be a line of JSON with a payload", spec.Kind)
	} else {
		spec.Payload, err = l.payload(&lineCommand{}, []string{string(text)})
	}
	if spec.Kind == serve.Kind {
		spec.MaxAttempts = cmp.Or(spec.MaxAttempts, 1) // as for a single command
	}
	if err != nil || l.uniquePrefix == "" {
		return spec, err
	}
	if spec.Unique != "" {
		return spec, errors.New(`it has "unique", and --unique-prefix sets that too: use one of them`)
	}
	spec.Unique = uniqueName(l.uniquePrefix, no)
	return spec, nil
}

// payload returns the payload of a command: words, or a script.
func (l *taskLines) payload(c *lineCommand, words []string) ([]byte, error) {
	cmd := isolate.Command{Args: words, Env: slices.Concat(l.env, c.Env), Stdin: c.Stdin}
	switch {
	case c.Script != "" && len(words) > 0:
		return nil, errors.New(`its command has both "script" and "args": use one of them`)
	case c.Script != "":
		cmd.Args = []string{"sh", "-c", c.Script}
	case c.Args == nil && run.LooksLikeScript(words):
		cmd.Args = []string{"sh", "-c", words[0]}
	}
	if len(c.Stdin) > serve.StdinMax {
		return nil, fmt.Errorf("its standard input is longer than %d bytes", serve.StdinMax)
	}
	var err error
	if cmd.Dir = c.Dir; cmd.Dir == "" {
		if cmd.Dir, err = filepath.Abs(l.dir); err != nil {
			return nil, err
		}
	}
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(&cmd)
}

// inBatches collects lines while the receiver is busy with the last batch: batches are
// large if lines come faster than batches are done, and no line waits for others if they
// come slowly.
func inBatches(ctx context.Context, lines <-chan taskLine) <-chan []taskLine {
	batches := make(chan []taskLine)
	go func() {
		defer close(batches)
		var batch []taskLine
		for bytes := 0; lines != nil || len(batch) > 0; {
			in, out := lines, batches
			if len(batch) == 0 {
				out = nil
			}
			if len(batch) >= batchTasks || bytes >= batchBytes {
				in = nil
			}
			select {
			case line, ok := <-in:
				if !ok {
					lines = nil
					continue
				}
				batch = append(batch, line)
				bytes += len(line.spec.Payload)
			case out <- batch:
				batch, bytes = nil, 0
			case <-ctx.Done():
				return
			}
		}
	}()
	return batches
}
