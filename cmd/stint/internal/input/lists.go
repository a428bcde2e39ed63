package input

import (
	"errors"
	"iter"
	"slices"
)

// Marker stands before each list of inputs on the command line.
const Marker = ":::"

// ErrEmptyList answers a [Marker] with nothing behind it.
var ErrEmptyList = errors.New("::: has no inputs after it")

// SplitArgs separates a command from the lists of inputs that follow it, each
// after a [Marker]. Without a marker lists is nil: inputs come from a stream.
func SplitArgs(args []string) (command []string, lists [][]string, err error) {
	at := slices.Index(args, Marker)
	if at < 0 {
		return args, nil, nil
	}
	command = args[:at]
	for rest := args[at+1:]; ; {
		end := slices.Index(rest, Marker)
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			// A glob that matched nothing under nullglob, most likely: better
			// an error than the wrong inputs.
			return nil, nil, ErrEmptyList
		}
		lists = append(lists, rest[:end])
		if end == len(rest) {
			return command, lists, nil
		}
		rest = rest[end+1:]
	}
}

// Product iterates over every combination of one element of each list, the
// last list varying fastest, as nested loops would. Each slice that it yields
// is fresh.
func Product(lists [][]string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		index := make([]int, len(lists))
		for {
			if !yield(pick(lists, index)) || !advance(lists, index) {
				return
			}
		}
	}
}

// Count is the number of elements that [Product] yields. It wraps around for
// lists whose product nobody could run.
func Count(lists [][]string) int {
	n := 1
	for _, list := range lists {
		n *= len(list)
	}
	return n
}

func pick(lists [][]string, index []int) []string {
	words := make([]string, len(lists))
	for i, list := range lists {
		words[i] = list[index[i]]
	}
	return words
}

// advance counts index up by one, like an odometer, and reports whether it did
// not start over.
func advance(lists [][]string, index []int) bool {
	for i := len(index) - 1; i >= 0; i-- {
		if index[i]++; index[i] < len(lists[i]) {
			return true
		}
		index[i] = 0
	}
	return false
}
