package remote

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
)

// How many digits of an ID there are, how many have to be given, and how many may be
// its end: fewer are likely a slip, and more can only be its beginning, which is found
// without a look at every task.
const (
	digitsAll    = 2 * len(queue.ID{})
	digitsMin    = 4
	digitsEnding = 12 // as in the last group of the text
	digitsShort  = 8  // that Short gives
)

// ID finds the task that a person means: by its whole ID, or by the end or the
// beginning of it, with dashes or without, if that is the end or the beginning of one
// task only. IDs begin with their time, and those of tasks that were submitted together
// are alike for long; their ends are random.
func (s *Server) ID(ctx context.Context, text string) (queue.ID, error) {
	if id, err := queue.ParseID(text); err == nil {
		return id, nil
	}
	digits := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(digits) < digitsMin || len(digits) > digitsAll || strings.Trim(digits, "0123456789abcdef") != "" {
		return queue.ID{}, fmt.Errorf("%q is no task: give its ID, or the end of that, as stint ls shows it", text)
	}
	tasks, err := s.beginning(ctx, digits)
	if err == nil && len(digits) <= digitsEnding {
		var ending []queue.Task
		ending, err = s.store.Find(ctx, queue.Filter{Ending: digits}, queue.Page{Newest: true, Limit: candidatesMost + 1})
		tasks = append(tasks, ending...)
	}
	if err != nil {
		return queue.ID{}, err
	}
	return one(text, tasks)
}

// IDs finds several tasks.
func (s *Server) IDs(ctx context.Context, texts []string) (ids []queue.ID, err error) {
	for _, text := range texts {
		id, err := s.ID(ctx, text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// candidatesMost is how many are named if it is not clear which task is meant.
const candidatesMost = 3

// beginning returns the newest tasks whose IDs begin with some digits.
func (s *Server) beginning(ctx context.Context, digits string) ([]queue.Task, error) {
	page := queue.Page{Newest: true, After: behind(digits), Limit: candidatesMost + 1}
	tasks, err := s.store.Find(ctx, queue.Filter{}, page)
	for i := range tasks {
		if id := tasks[i].ID; !strings.HasPrefix(hex.EncodeToString(id[:]), digits) {
			return tasks[:i], err
		}
	}
	return tasks, err
}

// one returns the ID of the only task that a text names.
func one(text string, tasks []queue.Task) (queue.ID, error) {
	slices.SortStableFunc(tasks, func(a, b queue.Task) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	tasks = slices.CompactFunc(tasks, func(a, b queue.Task) bool { return a.ID == b.ID })
	switch len(tasks) {
	case 0:
		return queue.ID{}, fmt.Errorf("%w: no task has an ID that ends or begins with %s: stint ls lists the tasks",
			queue.ErrNotFound, text)
	case 1:
		return tasks[0].ID, nil
	}
	var names []string
	for i := range tasks[:min(len(tasks), candidatesMost)] {
		names = append(names, tasks[i].ID.String())
	}
	if len(tasks) > candidatesMost {
		names = append(names, "others")
	}
	return queue.ID{}, fmt.Errorf("%s may be %s: give more digits", text, strings.Join(names, " or "))
}

// behind is the first ID after all that begin with some digits. If there is none it
// is the zero ID, behind which pages begin at the very end.
func behind(digits string) (id queue.ID) {
	last, err := hex.DecodeString(digits + strings.Repeat("f", digitsAll-len(digits)))
	if err != nil {
		panic(err) // the digits have been looked at
	}
	copy(id[:], last)
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Short is the end of an ID, which people can use for it. Of ten thousand tasks two have
// the same one once in a hundred times.
func Short(id queue.ID) string { return hex.EncodeToString(id[len(id)-digitsShort/2:]) }
