package transfer_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// An upload is waiting, running, paused, cancelled, dead or succeeded, each with its ID,
// progress and attempt.
func TestE1_StatesOfUploads(t *testing.T) {
	r := newRig(t, transfer.Config{})
	g := newGate(t, 3*chunkSize)
	r.server.content = g.content
	small := transfer.Upload{ChunkSize: chunkSize}
	running := r.add("running", content(1, 5*chunkSize), small, queue.Options{Tier: stint.High})
	waiting := r.add("waiting", content(2, chunkSize), small, queue.Options{})
	paused := r.add("paused", content(3, chunkSize), small, queue.Options{})
	cancelled := r.add("cancelled", content(4, chunkSize), small, queue.Options{})
	dead := r.add("dead", nil, transfer.Upload{To: r.server.http.URL + "/nothing"}, queue.Options{Tier: stint.Highest})
	for order, err := range map[string]error{
		"pause": r.queue.Pause(t.Context(), paused), "cancel": r.queue.Cancel(t.Context(), cancelled),
	} {
		if err != nil {
			t.Errorf("%s: %v", order, err)
		}
	}
	stop := r.run(1)
	<-g.reached
	r.until(running, "reported", func(task queue.Task) bool { return task.Progress.Done > 0 })
	seen := map[queue.ID]transfer.Transfer{}
	for found, err := range transfer.Find(t.Context(), r.queue, queue.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[found.ID] = found
	}
	for id, want := range map[queue.ID]queue.State{
		running: queue.Running, waiting: queue.Waiting, paused: queue.Paused, cancelled: queue.Cancelled, dead: queue.Dead,
	} {
		got := seen[id]
		if got.State != want || got.Name != want.String() || got.Attempt != 1 || id != dead && got.Size == 0 {
			t.Errorf("%+v; want the state %s, the same name, and attempt 1", got, want)
		}
	}
	if got := seen[running]; got.Done < 3*chunkSize || got.Done > got.Size || got.Size != 5*chunkSize {
		t.Errorf("the running upload: %+v", got)
	}
	if got := seen[dead]; got.Err == "" {
		t.Errorf("the dead upload: %+v; want an error", got)
	}
	g.open()
	r.wait(running, queue.Succeeded)
	r.wait(waiting, queue.Succeeded)
	stop()
	stats, err := transfer.Count(t.Context(), r.queue, queue.Filter{})
	want := map[queue.State]int{queue.Succeeded: 2, queue.Paused: 1, queue.Cancelled: 1, queue.Dead: 1}
	for state, n := range want {
		if stats.States[state] != n {
			t.Errorf("%d uploads are %s; want %d", stats.States[state], state, n)
		}
	}
	if err != nil || stats.Done != 6*chunkSize || stats.Size != 8*chunkSize || stats.Rate != 0 {
		t.Errorf("the statistics are %+v, error %v", stats, err)
	}
}

// A paused upload keeps what the server has and gives its slot to the next one. Resumed, it
// sends the rest.
func TestE2_PauseAndResumeOneThatRuns(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		r := newRig(t, transfer.Config{})
		g := newGate(t, 7*chunkSize)
		r.server.content = g.content
		first, second := content(1, 12*chunkSize), content(2, 2*chunkSize)
		id := r.add("first", first, transfer.Upload{ChunkSize: chunkSize, Lanes: lanes}, queue.Options{})
		r.run(1)
		<-g.reached // lanes may have ended before
		if err := r.queue.Pause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.becomes(id, queue.Paused)
		g.open()
		next := r.add("second", second, transfer.Upload{ChunkSize: chunkSize}, queue.Options{})
		r.wait(next, queue.Succeeded) // on the only slot
		task := r.becomes(id, queue.Paused)
		seen, err := transfer.Of(task)
		done := 0
		for _, s := range seen.Chunks {
			if s == transfer.ChunkDone {
				done++
			}
		}
		if err != nil || slices.Contains(seen.Chunks, transfer.ChunkUploading) || done == 0 ||
			seen.Done != int64(done)*chunkSize {
			t.Errorf("paused, it is %+v, error %v", seen, err)
		}
		if n := r.server.count(http.MethodDelete); n != 0 {
			t.Errorf("a pause made %d DELETE requests", n)
		}
		if err := r.queue.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		task = r.wait(id, queue.Succeeded)
		r.server.has(t, "first", first)
		r.server.has(t, "second", second)
		result, err := queue.Result[transfer.Result](task)
		if err != nil || result.Skipped < int64(done)*chunkSize || result.Sent+result.Skipped > result.Size+chunkSize {
			t.Errorf("lanes: %d; with %d chunks done, the result is %+v, error %v", lanes, done, result, err)
		}
		if task.Failures != 0 {
			t.Errorf("a pause counted as %d failures", task.Failures)
		}
	}
}

// Commands for all reach those that run and those that are queued.
func TestE2_PauseAndResumeAll(t *testing.T) {
	r := newRig(t, transfer.Config{})
	g := newGate(t, 4*chunkSize)
	r.server.content = g.content
	const files, slots = 6, 3
	ids, contents := make([]queue.ID, files), make([][]byte, files)
	for i := range ids {
		contents[i] = content(uint64(i), 3*chunkSize+i)
		ids[i] = r.add("file"+string(rune('a'+i)), contents[i], transfer.Upload{ChunkSize: chunkSize}, queue.Options{})
	}
	r.run(slots)
	for range slots {
		<-g.reached
	}
	all := queue.Filter{Kind: string(transfer.Kind)}
	n, err := r.queue.Command(t.Context(), queue.Command{Do: queue.OrderPause, Filter: all})
	if err != nil || n == 0 {
		t.Fatalf("paused %d, error %v", n, err)
	}
	for _, id := range ids {
		r.until(id, "paused or succeeded", func(task queue.Task) bool {
			return task.State == queue.Paused || task.State == queue.Succeeded
		})
	}
	g.open()
	if n, err := r.queue.Command(t.Context(), queue.Command{Do: queue.OrderResume, Filter: all}); err != nil || n == 0 {
		t.Fatalf("resumed %d, error %v", n, err)
	}
	for i, id := range ids {
		r.wait(id, queue.Succeeded)
		r.server.has(t, "file"+string(rune('a'+i)), contents[i])
	}
}

// Cancelling ends an upload that runs, deletes it at the server, and frees the slot.
func TestE2_CancelOneThatRuns(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		r := newRig(t, transfer.Config{})
		g := newGate(t, 6*chunkSize)
		r.server.content = g.content
		id := r.add("first", content(1, 12*chunkSize), transfer.Upload{ChunkSize: chunkSize, Lanes: lanes}, queue.Options{})
		r.run(1)
		<-g.reached // lanes may have ended before
		if err := r.queue.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.wait(id, queue.Cancelled)
		g.open()
		if n := r.server.count(http.MethodDelete); n != lanes || len(r.server.uploads) != 0 {
			t.Errorf("%d lanes: %d DELETE requests, %d uploads are left", lanes, n, len(r.server.uploads))
		}
		second := content(2, chunkSize)
		r.wait(r.add("second", second, transfer.Upload{}, queue.Options{}), queue.Succeeded)
		r.server.has(t, "second", second)
		// A retry of the cancelled one sends it as a whole.
		if err := r.queue.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		r.wait(id, queue.Succeeded)
		r.server.has(t, "first", content(1, 12*chunkSize))
	}
}

// An upload that is cancelled while it is queued never starts. If the server has a part of it,
// Terminate deletes that.
func TestE2_CancelOneThatIsQueued(t *testing.T) {
	r := newRig(t, transfer.Config{})
	g := newGate(t, 2*chunkSize)
	r.server.content = g.content
	id := r.add("a", content(1, 4*chunkSize), transfer.Upload{ChunkSize: chunkSize}, queue.Options{})
	never := r.add("b", content(1, 4*chunkSize), transfer.Upload{ChunkSize: chunkSize}, queue.Options{})
	if err := r.queue.Cancel(t.Context(), never); err != nil {
		t.Fatal(err)
	}
	r.run(1)
	<-g.reached
	if err := r.queue.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := transfer.Terminate(t.Context(), r.becomes(id, queue.Paused), transfer.Config{}); err == nil {
		t.Error("Terminate deleted an upload that is paused")
	}
	if err := r.queue.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	task := r.wait(id, queue.Cancelled)
	if len(r.server.uploads) != 1 {
		t.Fatalf("the server has %d uploads; want the part of one", len(r.server.uploads))
	}
	for range 2 {
		if err := transfer.Terminate(t.Context(), task, transfer.Config{}); err != nil {
			t.Error(err)
		}
	}
	if err := transfer.Terminate(t.Context(), r.wait(never, queue.Cancelled), transfer.Config{}); err != nil {
		t.Error(err)
	}
	g.open()
	if len(r.server.uploads) != 0 || r.server.created != 1 {
		t.Errorf("%d uploads are left, and %d were created; want 0 and 1", len(r.server.uploads), r.server.created)
	}
}

// An upload that fails is tried again three times, and can be retried after that.
func TestE2_RetriedThreeTimes(t *testing.T) {
	r := newRig(t, transfer.Config{})
	broken := true
	r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
		if broken && req.Method == http.MethodPatch {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	want := content(1, 3*chunkSize)
	id := r.add("a", want, transfer.Upload{ChunkSize: chunkSize}, queue.Options{})
	stop := r.run(1)
	task := r.wait(id, queue.Dead)
	seen, err := transfer.Of(task)
	if err != nil || task.Failures != 1+transfer.DefaultRetries || seen.Attempt != task.Failures ||
		!slices.Contains(seen.Chunks, transfer.ChunkError) || r.server.created != 1 {
		t.Errorf("after %d failures, it is %+v, error %v; %d uploads were created", task.Failures, seen, err,
			r.server.created)
	}
	stop()
	broken = false
	r.restart()
	r.run(1)
	if err := r.queue.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.wait(id, queue.Succeeded)
	r.server.has(t, "a", want)
	if r.server.created != 1 {
		t.Errorf("%d uploads were created; want the first one to go on", r.server.created)
	}
}

// While an upload stalls, its rate says nothing about when it will be there.
func TestOf_NoTimeWhileAnUploadStalls(t *testing.T) {
	task := queue.Task{Spec: queue.Spec{Kind: string(transfer.Kind)}, State: queue.Running, Progress: queue.Progress{
		Done: 1, Total: 10 << 30, Note: "0.01 B/s",
	}}
	task.Payload = []byte(`{"path":"a","to":"http://127.0.0.1/"}`)
	if seen, err := transfer.Of(task); err != nil || seen.Rate != 0.01 || seen.ETA != 0 {
		t.Errorf("at %v B/s, it is there in %v, %v", seen.Rate, seen.ETA, err)
	}
}

// A list of uploads, which more programs read than the store, has no password of a URL.
func TestOf_HasNoPassword(t *testing.T) {
	task := queue.Task{Spec: queue.Spec{Kind: string(transfer.Kind), Payload: []byte(
		`{"path":"/a","to":"https://ann:secret@example.com/files/"}`)}}
	upload, err := transfer.Of(task)
	if err != nil || upload.To != "https://ann:xxxxx@example.com/files/" {
		t.Errorf("%q, %v", upload.To, err)
	}
}
