package redisstore_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/redisstore"
)

// memoryMax is the memory of the server for a pending task with a payload of 100 bytes.
const memoryMax = 450

// TestC6_Memory: the server needs little more for a task than its row.
func TestC6_Memory(t *testing.T) {
	const tasks = 100_000
	server := newServer(t, "--appendonly", "no")
	raw := server.raw(t)
	used := func() int {
		t.Helper()
		info, err := raw.InfoMap(t.Context(), "memory").Result()
		if err != nil {
			t.Fatal(err)
		}
		return number(t, info["Memory"]["used_memory"])
	}
	s := open(t, server.url(), redisstore.Config{})
	before := used()
	payload := []byte(strings.Repeat("x", 100))
	var ids queue.IDs
	for range tasks / 1000 {
		batch := make([]queue.NewTask, 1000)
		for i := range batch {
			batch[i] = queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "work", Payload: payload}}
		}
		if _, err := s.Submit(t.Context(), now, batch); err != nil {
			t.Fatal(err)
		}
	}
	each := (used() - before) / tasks
	key, err := raw.MemoryUsage(t.Context(), "{stint}:rows:t", 0).Result()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes a task by used_memory, %d by MEMORY USAGE of the rows", each, int(key)/tasks)
	if each > memoryMax {
		t.Errorf("a task takes %d bytes of the server, and may take %d", each, memoryMax)
	}
}
