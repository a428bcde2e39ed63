package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// DryRun writes the commands that [Do] would run to w, one per line, in the order of the
// inputs, and returns the number of inputs that cannot be made into a command. An input that
// would end the run ends it, after the commands of all inputs before.
func DryRun(cfg *Config, w io.Writer) (bad int, err error) {
	refused := refusals{say: cfg.Say}
	buffered := bufio.NewWriter(w)
	err = dryRun(cfg, buffered, &refused)
	refused.sum()
	return refused.n, errors.Join(err, buffered.Flush())
}

func dryRun(cfg *Config, w *bufio.Writer, refused *refusals) error {
	seq := 0
	for in, err := range cfg.Source.all(cfg.Source.File, func(int64) {}) {
		if err != nil {
			return fmt.Errorf("read inputs: %w", err)
		}
		seq++
		j, err := cfg.job(seq, in)
		if err != nil {
			refused.note(j, err)
			continue
		}
		done, err := cfg.Log.Done(seq, j.text)
		if err != nil {
			return err
		}
		if !done {
			_, _ = fmt.Fprintln(w, j.text) // Flush returns the error
		}
	}
	return nil
}
