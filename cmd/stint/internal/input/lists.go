package input

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
)

// List is one list of inputs on the command line, unparsed.
type List struct {
	Values []string
	File   string // the file with the values; - is standard input; empty: no file
	// Linked: its first value goes with the first of the list before it, its second with
	// the second, and so on.
	Linked bool
}

// marker precedes lists of inputs on the command line.
type marker struct{ files, linked bool }

// markersTable has the markers of GNU parallel, with the same meaning.
var markersTable = map[string]marker{
	":::":   {},
	":::+":  {linked: true},
	"::::":  {files: true},
	"::::+": {files: true, linked: true},
}

// Errors of the lists on the command line.
var (
	// ErrEmptyList is the error of a marker without inputs. Most likely a glob matched
	// nothing under nullglob, and running with the wrong inputs would be worse.
	ErrEmptyList = errors.New("has no inputs after it")
	// ErrUnlinked is the error of a linked list without a list before it.
	ErrUnlinked = errors.New("links its inputs to those of the list before it, and there is none: leave out the +")
)

// SplitArgs separates a command from the lists of inputs that follow it, each after a
// marker: ::: before inputs, :::: before files of inputs, either with a + if they are
// linked. Without a marker, lists is nil: inputs come from a stream.
func SplitArgs(args []string) (command []string, lists []List, err error) {
	at := nextMarker(args)
	command, args = args[:at], args[at:]
	for len(args) > 0 {
		name, m := args[0], markersTable[args[0]]
		end := 1 + nextMarker(args[1:])
		values := args[1:end]
		args = args[end:]
		switch {
		case len(values) == 0:
			return nil, nil, fmt.Errorf("%s %w", name, ErrEmptyList)
		case m.linked && lists == nil:
			return nil, nil, fmt.Errorf("%s %w", name, ErrUnlinked)
		case !m.files:
			lists = append(lists, List{Values: values, Linked: m.linked})
			continue
		}
		for _, file := range values {
			lists = append(lists, List{File: file, Linked: m.linked})
		}
	}
	return command, lists, nil
}

// nextMarker returns the index of the first marker, or the number of args.
func nextMarker(args []string) int {
	for i, arg := range args {
		if strings.HasPrefix(arg, ":::") {
			if _, ok := markersTable[arg]; ok {
				return i
			}
		}
	}
	return len(args)
}

// Group is a set of linked lists: their first values go together, their second values,
// and so on until the shortest list ends.
type Group [][]string

// Len returns the length of the shortest list.
func (g Group) Len() int {
	n := len(g[0])
	for _, list := range g {
		n = min(n, len(list))
	}
	return n
}

// Longest returns the length of the longest list.
func (g Group) Longest() (n int) {
	for _, list := range g {
		n = max(n, len(list))
	}
	return n
}

// Product iterates over every combination of one row of each group, the last
// group varying fastest, as nested loops would. Each slice that it yields is
// fresh.
func Product(groups []Group) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if Count(groups) == 0 {
			return
		}
		index := make([]int, len(groups))
		for {
			if !yield(pick(groups, index)) || !advance(groups, index) {
				return
			}
		}
	}
}

// Count returns the number of elements that [Product] yields, [math.MaxInt] if there are more.
func Count(groups []Group) int {
	n := 1
	for _, group := range groups {
		switch rows := group.Len(); {
		case rows == 0:
			return 0
		case n > math.MaxInt/rows:
			n = math.MaxInt // a later group may have no rows
		default:
			n *= rows
		}
	}
	return n
}

func pick(groups []Group, index []int) []string {
	words := make([]string, 0, len(groups))
	for i, group := range groups {
		for _, list := range group {
			words = append(words, list[index[i]])
		}
	}
	return words
}

// advance counts index up by one, like an odometer. It returns false when index starts
// over.
func advance(groups []Group, index []int) bool {
	for i := len(index) - 1; i >= 0; i-- {
		if index[i]++; index[i] < groups[i].Len() {
			return true
		}
		index[i] = 0
	}
	return false
}
