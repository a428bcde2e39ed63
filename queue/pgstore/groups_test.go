package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/pgstore"
)

// TestC11_SubmitTxIntoAnotherGroup: a task that a transaction submits to the tables of a group that
// does not have its queue is refused, and the log says why. Tasks beside it are accepted, and the
// processes of the groups can start.
func TestC11_SubmitTxIntoAnotherGroup(t *testing.T) {
	dsn, back := sharedServer(t), &lines{}
	groups := []cluster.Group{{Name: "rest"}, {Name: "mail", Queues: []string{"news"}}}
	schemas := make([]string, len(groups))
	for i := range groups {
		schemas[i] = newSchema()
		groups[i].Open = func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
			return pgstore.Open(ctx, dsn, pgstore.Config{
				Schema: schemas[i], Name: self.Name, Contact: self.Contact, Logger: slog.New(slog.NewTextHandler(back, nil)),
			})
		}
	}
	first, err := cluster.OpenGroups(t.Context(), groups, cluster.Config{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	c := connection(t, dsn)
	var ids queue.IDs
	submit := func(schema, name string) queue.ID {
		task := prepared(&ids, queue.Spec{Options: queue.Options{Queue: name}})
		if err := pgstore.SubmitTx(t.Context(), c, pgstore.Config{Schema: schema}, task); err != nil {
			t.Fatal(err)
		}
		return task.ID
	}
	wrong := submit(schemas[0], "news")
	awaits(t, first, []queue.ID{submit(schemas[0], "other"), submit(schemas[1], "news")}, 2)
	if err := first.Close(); err != nil && !errors.Is(err, queue.ErrLed) {
		t.Fatal(err)
	}
	second, err := cluster.OpenGroups(t.Context(), groups, cluster.Config{Name: "second"})
	if err != nil {
		t.Fatalf("a process of the groups does not start: %v", err)
	}
	defer second.Close()
	found, err := second.Find(t.Context(), queue.Filter{IDs: []queue.ID{wrong}}, queue.Page{})
	if err != nil || len(found) > 0 {
		t.Errorf("the task of another group was accepted: %v, %v", found, err)
	}
	back.awaits(t, "queue news is of group mail at the leader of group rest")
}

// awaits waits until a text is written.
func (l *lines) awaits(t *testing.T, text string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for !strings.Contains(l.String(), text) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("nothing is logged with %q:\n%s", text, l)
		}
	}
}
