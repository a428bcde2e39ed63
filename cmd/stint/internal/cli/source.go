package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/stintgo/stint/cmd/stint/internal/input"
)

// source sets where inputs come from.
func (f *runFlags) source(r *runner, lists []input.List) error {
	src := &r.cfg.Source
	src.Max = f.max
	var errs [3]error
	if f.colsep != "" {
		src.Splitter, errs[0] = input.ParseSplitter(f.colsep)
	}
	if !f.null {
		src.Separator, errs[1] = input.ParseDelimiter(f.delimiter)
	}
	switch {
	case lists != nil && f.file != "":
		errs[2] = errors.New("-a and the lists after ::: or :::: give inputs: use one of them; :::: FILE is a list, too")
	case len(lists) == 1 && lists[0].File != "":
		src.File, errs[2] = f.stream(r, lists[0].File) // of any length: not stored
	case lists != nil && errs[1] == nil:
		src.Lists, errs[2] = f.groups(r, lists)
	case lists == nil:
		src.File, errs[2] = f.stream(r, f.file)
	}
	return errors.Join(errors.Join(errs[:]...), src.Check())
}

// stream opens a file of inputs; - and no name stand for standard input.
func (f *runFlags) stream(r *runner, name string) (*os.File, error) {
	if name == "" || name == "-" {
		return r.standardInput(f.dryRun)
	}
	var err error
	if r.input, err = os.Open(name); err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	return r.input, refuseDir(r.input, name)
}

// standardInput returns standard input for inputs, which only one list may use.
func (r *runner) standardInput(quiet bool) (*os.File, error) {
	if r.inputs {
		return nil, errors.New("standard input (-) is given for two lists, and can be read only once")
	}
	r.inputs = true
	if isTerminal(r.streams.in) && !quiet {
		r.say("reading inputs from the terminal, one on each line; Ctrl-D ends them")
	}
	return r.streams.in, refuseDir(r.streams.in, "standard input")
}

// groups reads the lists and groups linked ones.
func (f *runFlags) groups(r *runner, lists []input.List) (groups []input.Group, err error) {
	var errs []error
	for i, list := range lists {
		values := list.Values
		if list.File != "" {
			linked := list.Linked || i+1 < len(lists) && lists[i+1].Linked
			values, err = f.readList(r, list.File, linked)
			errs = append(errs, err)
		}
		if last := len(groups) - 1; list.Linked {
			groups[last] = append(groups[last], values)
			continue
		}
		groups = append(groups, input.Group{values})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, group := range groups {
		if n, most := group.Len(), group.Longest(); n < most {
			r.say(fmt.Sprintf("linked lists have %d to %d inputs: those after the first %d of each are left out", n, most, n))
		}
	}
	return groups, nil
}

// readList reads a file of inputs to its end. In linked lists, empty inputs count.
func (f *runFlags) readList(r *runner, name string, linked bool) (values []string, err error) {
	var file *os.File
	if name == "-" {
		file, err = r.standardInput(f.dryRun)
	} else if file, err = os.Open(name); err != nil {
		err = fmt.Errorf("inputs: %w", err)
	} else {
		defer func() { _ = file.Close() }() // never written to
		err = refuseDir(file, name)
	}
	if err != nil {
		return nil, err
	}
	records := input.Records
	if linked {
		records = input.AllRecords
	}
	for value, err := range records(file, r.cfg.Source.Separator) {
		if err != nil {
			return nil, fmt.Errorf("read inputs: %s: %w", name, err)
		}
		values = append(values, value)
	}
	return values, nil
}

// refuseDir refuses a directory, and says how to use its files as inputs.
func refuseDir(f *os.File, name string) error {
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("inputs: %s is a directory; for its files, write: find DIR -type f | stint run …", name)
	}
	return nil
}
