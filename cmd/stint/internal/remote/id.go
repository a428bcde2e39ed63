package remote

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/stintgo/stint/queue"
)

// How many digits of an ID there are, and have to be given: fewer are of days, and
// more likely a slip than meant.
const (
	digitsAll = 2 * len(queue.ID{})
	digitsMin = 4
)

// ID finds the task that a person means: by its whole ID, or by the beginning of
// that, with dashes or without, if only one task has such an ID. IDs are kept in
// their order, so that is sure and takes no search, however many tasks there are.
// (Their ends are random and would be shorter, but nothing finds those but a look
// at every task.)
func (s *Server) ID(ctx context.Context, text string) (queue.ID, error) {
	if id, err := queue.ParseID(text); err == nil {
		return id, nil
	}
	digits := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(digits) < digitsMin || len(digits) > digitsAll || strings.Trim(digits, "0123456789abcdef") != "" {
		return queue.ID{}, fmt.Errorf("%q is no task: give its ID, or the beginning of that, as stint ls shows it", text)
	}
	return s.byBeginning(ctx, text, digits)
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

func (s *Server) byBeginning(ctx context.Context, text, digits string) (queue.ID, error) {
	page := queue.Page{Newest: true, After: behind(digits), Limit: candidatesMost + 1}
	tasks, err := s.store.Find(ctx, queue.Filter{}, page)
	if err != nil {
		return queue.ID{}, err
	}
	var found []string
	for i := range tasks {
		id := tasks[i].ID
		if !strings.HasPrefix(hex.EncodeToString(id[:]), digits) {
			break
		}
		found = append(found, id.String())
	}
	switch len(found) {
	case 0:
		return queue.ID{}, fmt.Errorf("%w: the ID of no task begins with %s: stint ls shows those that there are",
			queue.ErrNotFound, text)
	case 1:
		return tasks[0].ID, nil
	case candidatesMost + 1:
		found[candidatesMost] = "older ones"
	}
	return queue.ID{}, fmt.Errorf("%s may be %s: give more digits", text, strings.Join(found, " or "))
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

// Short is the beginning of an ID, which people can use for it: the time, to a
// quarter of a microsecond.
func Short(id queue.ID) string {
	const characters = len("01890a5d-ac96-774b")
	return id.String()[:characters]
}
