package run

import (
	"bufio"
	"fmt"
	"io"
)

// DryRun writes the commands that [Do] would run to w, one per line, in the order of the
// inputs, and returns the number of inputs that cannot be made into a command.
func DryRun(cfg *Config, w io.Writer) (bad int, err error) {
	r := &Run{cfg: cfg}
	refused := refusals{say: cfg.Say}
	defer func() { bad = refused.n }()
	buffered := bufio.NewWriter(w)
	seq := 0
	for in, err := range cfg.Source.all(cfg.Source.File, func(int64) {}) {
		if err != nil {
			return 0, fmt.Errorf("read inputs: %w", err)
		}
		seq++
		j, err := r.makeJob(seq, in)
		if err != nil {
			refused.note(j, err)
			continue
		}
		done, err := cfg.Log.Done(seq, j.text)
		if err != nil {
			return 0, err
		}
		if !done {
			_, _ = fmt.Fprintln(buffered, j.text) // Flush returns the error
		}
	}
	refused.sum()
	return 0, buffered.Flush()
}
