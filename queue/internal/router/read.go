package router

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// Find is as [queue.Store] says: the tasks of all groups come in the order of their IDs.
func (s *Store) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	switch {
	case f.Queue != "":
		return s.stores[s.table.Of(f.Queue)].Find(ctx, f, p)
	case len(f.IDs) > 0 || p.Durable: // a group may take long to make its tasks durable
		return s.findAll(ctx, f, p)
	}
	pages := make([][]queue.Task, len(s.stores))
	err := s.gather(ctx, func(ctx context.Context, g int) (err error) {
		pages[g], err = s.stores[g].Find(ctx, f, p)
		return err
	})
	return merge(pages, p), err
}

// findAll is Find with an answer that lacks nothing: it waits for all groups. If it is for tasks by
// their IDs, it returns when all are found, also if a group does not answer, and asks no group that
// is known to have none of them.
func (s *Store) findAll(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	groups, wanted := s.all(), make(map[queue.ID]bool)
	if len(f.IDs) > 0 && f.Batch.IsZero() {
		known, unknown := s.tasks.split(len(f.IDs), func(i int) queue.ID { return f.IDs[i] })
		if len(unknown) == 0 {
			groups = slices.DeleteFunc(groups, func(g int) bool { return known[g] == nil })
		}
		for _, id := range f.IDs {
			wanted[id] = true
		}
	}
	var mu sync.Mutex // guards the variables below
	var pages [][]queue.Task
	found := 0
	err := s.search(ctx, groups, func(ctx context.Context, g int) (all bool, err error) {
		page, err := s.stores[g].Find(ctx, f, p)
		for i := range page {
			if wanted[page[i].ID] {
				s.tasks.put(page[i].ID, g)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		pages = append(pages, page)
		found += len(page)
		return err == nil && found == len(wanted) && found > 0, err
	})
	if err != nil {
		return nil, err
	}
	return merge(pages, p), nil
}

// defaultLimit is the limit of a [queue.Page] that has none.
const defaultLimit = 100

// merge merges pages of the groups to one page. A group may have tasks behind a page that is
// full; the merged page ends before them, because it has as many tasks, or bytes, before.
func merge(pages [][]queue.Task, p queue.Page) []queue.Task {
	all := slices.Concat(pages...)
	slices.SortFunc(all, func(a, b queue.Task) int {
		if p.Newest {
			a, b = b, a
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	size := 0
	for i := range all {
		if i == cmp.Or(p.Limit, defaultLimit) || p.Bytes > 0 && size >= p.Bytes {
			return all[:i]
		}
		size += all[i].Size()
	}
	return all
}

// Explain is as [queue.Store] says. It asks the group that is known to have the task, or all, and
// returns when one has it, also if another does not answer.
func (s *Store) Explain(ctx context.Context, now time.Time, id queue.ID) (reasons []queue.Reason, err error) {
	if g, known := s.tasks.of(id); known {
		return s.stores[g].Explain(ctx, now, id)
	}
	var mu sync.Mutex // guards the variables below
	var missing error
	found := false
	err = s.search(ctx, s.all(), func(ctx context.Context, g int) (all bool, err error) {
		got, err := s.stores[g].Explain(ctx, now, id)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			s.tasks.put(id, g)
			reasons, found = got, true
			return true, nil
		case errors.Is(err, queue.ErrNotFound):
			missing = err
			return false, nil
		}
		return false, err
	})
	if err == nil && !found {
		err = missing
	}
	return reasons, err
}

// Stats is as [queue.Store] says. Total has the running tasks of all groups. Lead is the
// leader of the default group, and Groups has those of all.
func (s *Store) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	parts := make([]queue.Stats, len(s.stores))
	err := s.gather(ctx, func(ctx context.Context, g int) (err error) {
		parts[g], err = s.stores[g].Stats(ctx, now)
		return err
	})
	silent := make(map[string]string) // the reasons of the groups that do not answer
	if partial, ok := errors.AsType[*queue.PartialError](err); ok {
		for _, m := range partial.Missing {
			silent[m.Name] = m.Reason
		}
	} else if err != nil {
		return queue.Stats{}, err
	}
	total := parts[s.table.Default()]
	total.Queues, total.Total.Keys = maps.Clone(total.Queues), maps.Clone(total.Total.Keys)
	var refuses []string
	for g := range parts {
		part := &parts[g]
		part.Refuses = cmp.Or(silent[s.table.Name(g)], part.Refuses)
		if part.Refuses != "" {
			refuses = append(refuses, "group "+s.table.Name(g)+": "+part.Refuses)
		}
		total.Groups = append(total.Groups, queue.Group{
			Name: s.table.Name(g), Queues: s.table.Queues(g), Lead: part.Lead,
		})
		if g == s.table.Default() {
			continue
		}
		for name, counts := range part.Queues {
			if _, known := total.Queues[name]; !known || s.table.Of(name) == g {
				if total.Queues == nil {
					total.Queues = make(map[string]queue.Counts)
				}
				total.Queues[name] = counts
			}
		}
		total.Total.Running += part.Total.Running
		total.Workers = joinWorkers(total.Workers, part.Workers)
		total.Nodes = joinNodes(total.Nodes, part.Nodes)
	}
	total.Refuses = strings.Join(refuses, "; ")
	return total, nil
}

// joinWorkers adds workers, whose queues are joined with those of the same worker.
func joinWorkers(all, more []queue.Worker) []queue.Worker {
	all = slices.Clone(all)
	for _, w := range more {
		i := slices.IndexFunc(all, func(o queue.Worker) bool { return o.Name == w.Name })
		if i < 0 {
			all = append(all, w)
			continue
		}
		kinds := maps.Clone(all[i].Kinds)
		if kinds == nil {
			kinds = make(map[string][]string)
		}
		maps.Copy(kinds, w.Kinds)
		all[i].Kinds = kinds
	}
	slices.SortStableFunc(all, func(a, b queue.Worker) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// joinNodes adds the nodes that are not there yet.
func joinNodes(all, more []queue.Node) []queue.Node {
	all = slices.Clone(all)
	for _, n := range more {
		if !slices.ContainsFunc(all, func(o queue.Node) bool { return o.Name == n.Name }) {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b queue.Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}
