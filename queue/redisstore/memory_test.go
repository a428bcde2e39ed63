package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/redisstore"
)

// memoryMax is the memory of the server for a pending task with a payload of 100 bytes.
const memoryMax = 450

// TestC11_Prefetch: tasks that start out of a backlog which is not in the leader's memory are
// read by their keys, many in one call. A scan of the hash, which takes longer the larger the
// backlog is, would be made for every hundred of them.
func TestC11_Prefetch(t *testing.T) {
	const tasks, size = 20_000, 1000
	server := newServer(t, "--appendonly", "no")
	s := open(t, server.url(), redisstore.Config{})
	var ids queue.IDs
	for range tasks / 1000 {
		batch := make([]queue.NewTask, 1000)
		for i := range batch {
			payload := []byte(strings.Repeat("x", size))
			batch[i] = queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "work", Payload: payload}}
		}
		if _, err := s.Submit(t.Context(), now, batch); err != nil {
			t.Fatal(err)
		}
	}
	raw := server.raw(t)
	counts := func() (scans, reads, packets int) {
		t.Helper()
		info, err := raw.InfoMap(t.Context(), "all").Result()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_hscan"], "calls=%d", &scans)
		_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_hget"], "calls=%d", &reads)
		return scans, reads, number(t, info["Stats"]["total_reads_processed"])
	}
	scansBefore, readsBefore, packetsBefore := counts()
	for started := 0; started < tasks; {
		claim := queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 100, Lease: time.Minute}
		got, err := s.Claim(t.Context(), now, claim)
		if err != nil || len(got.Tasks) == 0 {
			t.Fatalf("%d tasks have started; then a claim returns %d, %v", started, len(got.Tasks), err)
		}
		for i := range got.Tasks {
			if len(got.Tasks[i].Payload) != size {
				t.Fatalf("a task has a payload of %d bytes, want %d", len(got.Tasks[i].Payload), size)
			}
		}
		started += len(got.Tasks)
	}
	scans, reads, packets := counts()
	scans, reads, packets = scans-scansBefore, reads-readsBefore, packets-packetsBefore
	// A field is read for each row of the lease log, which has many leases, and one for each
	// row that is not in memory, of which one call reads many.
	if scans > 0 || reads < tasks/10 || reads > tasks*11/10 || packets > tasks/4 {
		t.Errorf("%d tasks started with %d scans, %d reads of fields and %d packets from the store",
			tasks, scans, reads, packets)
	}
}

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
