package remote

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
)

// Numbers of digits of an ID: in all, required from the user, and at most in a suffix.
// Fewer are likely a typing error. More can only be a prefix, which is found without a
// scan of all tasks.
const (
	digitsAll    = 2 * len(queue.ID{})
	digitsMin    = 4
	digitsEnding = 12 // the last group of the text form
	digitsShort  = 8  // in the result of Short
)

// ID returns the task that a text names: a whole ID, or a suffix or prefix of it, with or
// without dashes, if it matches only one task. IDs begin with their time, so tasks
// submitted together share a long prefix; the ends of IDs are random.
func (s *Server) ID(ctx context.Context, text string) (queue.ID, error) {
	if id, err := queue.ParseID(text); err == nil {
		return id, nil
	}
	digits := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(digits) < digitsMin || len(digits) > digitsAll || strings.Trim(digits, "0123456789abcdef") != "" {
		return queue.ID{}, fmt.Errorf(
			"%q is not an ID: give the ID of a task, or the end of the ID as stint ls shows it", text)
	}
	tasks, err := s.beginning(ctx, digits)
	if err == nil && len(digits) <= digitsEnding {
		var ending []queue.Task
		ending, err = s.store.Find(ctx, queue.Filter{Ending: digits}, queue.Page{Newest: true, Limit: candidatesMost + 1})
		tasks = append(tasks, ending...)
	}
	if _, partial := errors.AsType[*queue.PartialError](err); partial {
		return queue.ID{}, fmt.Errorf("give the whole ID of the task in place of %s, because not all tasks are known: %w",
			text, err)
	}
	if err != nil {
		return queue.ID{}, err
	}
	return one(text, tasks)
}

// IDs finds several tasks; see [Server.ID].
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

// candidatesMost is how many tasks an error names if a text matches several.
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

// one returns the ID of the only task in tasks, which are all that a text matches.
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

// behind returns the first ID after all that begin with some digits. If there is none, it
// returns the zero ID, which stands for the end of all pages.
func behind(digits string) (id queue.ID) {
	last, err := hex.DecodeString(digits + strings.Repeat("f", digitsAll-len(digits)))
	if err != nil {
		panic(err) // the digits were checked before
	}
	copy(id[:], last)
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Short returns the last [digitsShort] digits of an ID, which can be used in its place.
// Among 10,000 tasks, two share them with a probability of about 1 %.
func Short(id queue.ID) string { return hex.EncodeToString(id[len(id)-digitsShort/2:]) }
