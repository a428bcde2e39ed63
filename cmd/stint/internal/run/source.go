package run

import (
	"errors"
	"io"
	"iter"
	"os"

	"github.com/stintgo/stint/cmd/stint/internal/input"
)

// Source says where inputs come from: Lists if there are any, else File.
type Source struct {
	Lists     []input.Group
	File      *os.File
	Separator byte           // ends a record of File
	Max       int            // inputs per job; 0 means 1
	Splitter  input.Splitter // cuts an input into fields
}

// item is the input of one job.
type item struct {
	args, fields []string
}

// all iterates over the inputs of jobs, in order. It ends with an error if the input
// cannot be read further. r reads File. If the number of items can be estimated, guess is
// called with the estimate.
func (s *Source) all(r io.Reader, guess func(int64)) iter.Seq2[item, error] {
	if s.Lists == nil {
		return s.cut(batch(s.records(r, guess), s.perJob()))
	}
	if s.perJob() > 1 && !s.manyLists() {
		return s.cut(batch(values(s.Lists[0][0]), s.perJob()))
	}
	return func(yield func(item, error) bool) {
		for args := range input.Product(s.Lists) {
			if !yield(s.item(args), nil) {
				return
			}
		}
	}
}

func (s *Source) perJob() int { return max(s.Max, 1) }

// Several reports whether a job can have several inputs.
func (s *Source) Several() bool { return s.perJob() > 1 || s.manyLists() }

func (s *Source) manyLists() bool {
	return len(s.Lists) > 1 || len(s.Lists) == 1 && len(s.Lists[0]) > 1
}

// Total returns the number of jobs, or 0 if it is unknown before the input is read. More than
// [math.MaxInt] jobs count as that many.
func (s *Source) Total() int {
	n := input.Count(s.Lists)
	if s.Lists == nil || n == 0 {
		return 0
	}
	return (n-1)/s.perJob() + 1
}

var errOneList = errors.New("-n takes inputs from one list: leave it out, or all lists but one")

// Check reports options that cannot be combined.
func (s *Source) Check() error {
	if s.perJob() > 1 && s.manyLists() {
		return errOneList
	}
	if s.perJob() > 1 && s.Splitter.Splits() {
		return errors.New("-n and --colsep both say what {1} is: use one of them")
	}
	return nil
}

// item makes the input of a job from its arguments.
func (s *Source) item(args []string) item {
	if !s.Splitter.Splits() {
		return item{args: args, fields: args}
	}
	var fields []string
	for _, arg := range args {
		fields = append(fields, s.Splitter.Split(arg)...)
	}
	return item{args: args, fields: fields}
}

func (s *Source) cut(batches iter.Seq2[[]string, error]) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for args, err := range batches {
			if err != nil {
				yield(item{}, err)
				return
			}
			if !yield(s.item(args), nil) {
				return
			}
		}
	}
}

// records reads File. If File is a regular file, it estimates the number of items from
// its position.
func (s *Source) records(r io.Reader, guess func(int64)) iter.Seq2[string, error] {
	size := int64(0)
	if info, err := s.File.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	return func(yield func(string, error) bool) {
		var n, bytes int64
		for record, err := range input.Records(r, s.Separator) {
			n++
			bytes += int64(len(record)) + 1
			if size > 0 && n&(n-1) == 0 || n%1024 == 0 {
				guess(int64(float64(n) * float64(size) / float64(bytes) / float64(s.perJob())))
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// batch groups the values of seq by n; the last group has the rest.
func batch(seq iter.Seq2[string, error], n int) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var args []string
		for value, err := range seq {
			if err != nil {
				if len(args) == 0 || yield(args, nil) {
					yield(nil, err)
				}
				return
			}
			if args = append(args, value); len(args) == n {
				if !yield(args, nil) {
					return
				}
				args = nil
			}
		}
		if len(args) > 0 {
			yield(args, nil)
		}
	}
}

func values(list []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, value := range list {
			if !yield(value, nil) {
				return
			}
		}
	}
}
