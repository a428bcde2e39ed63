package transfer_test

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// Each upload that runs has a rate, and the statistics have the counts and the sum.
func TestE3_StatisticsWithRates(t *testing.T) {
	r := newRig(t, transfer.Config{})
	g := newGate(t, 6*chunkSize)
	r.server.content = g.content
	const running, size = 2, 10 * chunkSize
	var ids []queue.ID
	for range running {
		ids = append(ids, r.add("a", content(1, size), transfer.Upload{ChunkSize: chunkSize}, queue.Options{}))
	}
	queued := r.add("queued", content(1, size), transfer.Upload{}, queue.Options{Tier: stint.Low})
	paused := r.add("paused", content(1, size), transfer.Upload{}, queue.Options{})
	if err := r.queue.Pause(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	r.run(running)
	for range running {
		<-g.reached
	}
	for _, id := range ids {
		task := r.until(id, "measured", func(task queue.Task) bool {
			seen, err := transfer.Of(task)
			return err == nil && seen.Rate > 0
		})
		seen, err := transfer.Of(task)
		if err != nil || seen.ETA <= 0 || seen.Done <= 0 || seen.Done >= size || seen.Size != size ||
			!slices.Contains(seen.Chunks, transfer.ChunkUploading) {
			t.Errorf("%+v, error %v", seen, err)
		}
	}
	stats, err := transfer.Count(t.Context(), r.queue, queue.Filter{})
	if err != nil || stats.States[queue.Running] != running || stats.States[queue.Waiting] != 1 ||
		stats.States[queue.Paused] != 1 || stats.Rate <= 0 || stats.Done <= 0 || stats.Size != (running+2)*size {
		t.Errorf("the statistics are %+v, error %v", stats, err)
	}
	g.open()
	for _, id := range append(ids, queued) {
		seen, err := transfer.Of(r.wait(id, queue.Succeeded))
		if err != nil || seen.Rate != 0 || seen.ETA != 0 || seen.Done != size {
			t.Errorf("when it is finished, it is %+v, error %v", seen, err)
		}
	}
}

// Slots of the scheduler and limits of the queue bound the uploads that run at once, and tiers
// decide which one is next.
func TestE5_ConcurrencyAndPriority(t *testing.T) {
	for name, test := range map[string]struct{ slots, limit int }{"slots": {1, 0}, "limit of the queue": {8, 1}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, transfer.Config{})
			var now, most atomic.Int64
			r.server.content = func(_ *http.Request, body io.Reader) io.Reader {
				if n := now.Add(1); n > most.Load() {
					most.Store(n) // a later one may overwrite a larger number, but not with 1
				}
				return readerFunc(func(p []byte) (int, error) {
					n, err := body.Read(p)
					if err != nil {
						now.Add(-1)
					}
					return n, err
				})
			}
			if err := r.queue.Configure(t.Context(), queue.DefaultQueue, queue.Settings{Max: test.limit}); err != nil {
				t.Fatal(err)
			}
			var ids []queue.ID
			for _, tier := range []stint.Priority{stint.Low, stint.High, stint.Normal, stint.Highest} {
				for range 4 {
					ids = append(ids, r.add("a", content(1, chunkSize), transfer.Upload{}, queue.Options{Tier: tier}))
				}
			}
			r.run(test.slots)
			var tasks []queue.Task
			for _, id := range ids {
				tasks = append(tasks, r.wait(id, queue.Succeeded))
			}
			if most.Load() != 1 {
				t.Errorf("%d uploads ran at once; want one", most.Load())
			}
			slices.SortFunc(tasks, func(a, b queue.Task) int { // the times of outcomes stored in one batch are equal
				return cmp.Or(a.Changed.Compare(b.Changed), int(b.Tier)-int(a.Tier))
			})
			if !slices.IsSortedFunc(tasks, func(a, b queue.Task) int { return int(b.Tier) - int(a.Tier) }) {
				t.Error("an upload of a lower tier ended before one of a higher tier")
			}
		})
	}
}

// All uploads share one limiter, each at the tier of its task and on behalf of its key; what
// passes is what the limiter has admitted.
func TestE5_BytesPerSecondOverAllUploads(t *testing.T) {
	const first = 4 * chunkSize // tokens at the beginning
	limiter := stint.NewLimiter(1, stint.LimiterConfig{Capacity: first})
	r := newRig(t, transfer.Config{Rate: &limiter})
	tiers := []stint.Priority{stint.High, stint.Low}
	var ids []queue.ID
	for i, tier := range tiers {
		u := transfer.Upload{ChunkSize: chunkSize, Lanes: 2}
		ids = append(ids, r.add("f"+string(rune('0'+i)), content(uint64(i), 8*chunkSize), u, queue.Options{Tier: tier}))
	}
	r.run(len(tiers))
	for _, id := range ids {
		r.until(id, "limited", func(queue.Task) bool { return len(limiter.Waiting()) >= 4 })
	}
	counts := map[stint.Priority]int{}
	for _, w := range limiter.Waiting() {
		counts[w.Priority]++
	}
	if counts[stint.High] != 2 || counts[stint.Low] != 2 {
		t.Errorf("the lanes wait at the tiers %v; want two at each of %v", counts, tiers)
	}
	if n := r.server.bytes(); n > first+chunkSize {
		t.Errorf("%d bytes have passed; the limiter had %d", n, first)
	}
	limiter.SetRate(1 << 30)
	for i, id := range ids {
		r.wait(id, queue.Succeeded)
		r.server.has(t, "f"+string(rune('0'+i)), content(uint64(i), 8*chunkSize))
	}
}

// Secrets come from the environment of the worker, and are in no task.
func TestE2_HeadersFromTheEnvironment(t *testing.T) {
	const variable, secret = "STINT_UPLOAD_AUTH", "Bearer 123"
	t.Setenv(variable, secret)
	r := newRig(t, transfer.Config{})
	u := transfer.Upload{HeaderEnv: map[string]string{"Authorization": variable}, Metadata: map[string]string{"k": "v w"}}
	id := r.add("a", content(1, 10), u, queue.Options{})
	missing := r.add("b", nil, transfer.Upload{HeaderEnv: map[string]string{"X": "STINT_UPLOAD_NONE"}}, queue.Options{})
	r.run(1)
	task := r.wait(id, queue.Succeeded)
	for i, h := range r.server.headers {
		if h.Get("Authorization") != secret || h.Get("Expect") != "" {
			t.Errorf("%s has the headers %v", r.server.requests[i], h)
		}
	}
	result, err := queue.Result[transfer.Result](task)
	if err != nil || r.server.at(result.URL).metadata["k"] != "v w" {
		t.Errorf("the result is %+v, error %v", result, err)
	}
	if task := r.wait(missing, queue.Dead); task.Failures != 1 {
		t.Errorf("without the variable, there were %d failures: %s", task.Failures, task.Error)
	}
}

// The user and password of the URL are sent to its host, also if the server names uploads by absolute URLs without
// them. If these have another host, no credentials are sent, and the error says so.
func TestE2_AbsoluteLocations(t *testing.T) {
	r := newRig(t, transfer.Config{})
	home := r.server.http.URL
	r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
		if user, password, _ := req.BasicAuth(); user != "u" || password != "p" {
			http.Error(w, "no password", http.StatusUnauthorized)
			return true
		}
		if req.Method != http.MethodPost {
			return false
		}
		r.server.createAt(home, w, req)
		return true
	}
	to := strings.Replace(r.server.url(), "://", "://u:p@", 1)
	same := r.add("same", content(1, 10), transfer.Upload{To: to}, queue.Options{})
	stop := r.run(1)
	r.wait(same, queue.Succeeded)
	r.server.has(t, "same", content(1, 10))
	stop()
	home = strings.Replace(home, "127.0.0.1", "localhost", 1)
	r.restart()
	other := r.add("other", content(1, 10), transfer.Upload{To: to}, queue.Options{})
	r.run(1)
	if task := r.wait(other, queue.Dead); !strings.Contains(task.Error, "named this URL in the header Location") {
		t.Errorf("the error is %q", task.Error)
	}
}

// createAt creates an upload, and answers with its URL at an origin.
func (s *tusServer) createAt(origin string, w http.ResponseWriter, r *http.Request) {
	made := httptest.NewRecorder()
	s.serveEndpoint(made, r)
	w.Header().Set("Location", origin+made.Header().Get("Location"))
	w.WriteHeader(made.Code)
}

// A Location that names the default port, or has the host in capitals, is on the same server.
func TestE2_LocationsWithTheDefaultPort(t *testing.T) {
	var address string
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	r := newRig(t, transfer.Config{Client: &http.Client{Transport: &http.Transport{DialContext: dial}}})
	address = strings.TrimPrefix(r.server.http.URL, "http://")
	r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
		if user, _, _ := req.BasicAuth(); user != "u" {
			http.Error(w, "no user", http.StatusUnauthorized)
			return true
		}
		if req.Method != http.MethodPost {
			return false
		}
		r.server.createAt("http://UPLOADS.test:80", w, req)
		return true
	}
	to := strings.Replace(r.server.url(), address, "u:p@uploads.test", 1)
	id := r.add("a", content(1, 10), transfer.Upload{To: to}, queue.Options{})
	r.run(1)
	r.wait(id, queue.Succeeded)
	r.server.has(t, "a", content(1, 10))
}

// The token is read from its file by each attempt, and is in no task.
func TestE2_TokenFromAFile(t *testing.T) {
	r := newRig(t, transfer.Config{})
	path := filepath.Join(t.TempDir(), "token")
	id := r.add("a", content(1, 10), transfer.Upload{TokenFile: path}, queue.Options{})
	r.run(1)
	if task := r.wait(id, queue.Dead); task.Failures != 1 || !strings.Contains(task.Error, path) {
		t.Errorf("without the file, there were %d failures: %s", task.Failures, task.Error)
	}
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.queue.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	task := r.wait(id, queue.Succeeded)
	if strings.Contains(string(task.Payload), "secret") {
		t.Errorf("the task has the token: %s", task.Payload)
	}
	// A server that takes the old token no more gets the new one, without another attempt.
	r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
		if req.Header.Get("Authorization") == "Bearer newer" {
			return false
		}
		if err := os.WriteFile(path, []byte("newer"), 0o600); err != nil {
			t.Error(err)
		}
		http.Error(w, "expired", http.StatusUnauthorized)
		return true
	}
	second := r.add("b", content(1, 10), transfer.Upload{TokenFile: path}, queue.Options{})
	if task := r.wait(second, queue.Succeeded); task.Failures != 0 {
		t.Errorf("a replaced token made %d failures", task.Failures)
	}
	if len(r.server.headers) == 0 {
		t.Error("no request had a header")
	}
	for i, h := range r.server.headers {
		if got := h.Get("Authorization"); got != "Bearer secret" && got != "Bearer newer" {
			t.Errorf("%s has the headers %v", r.server.requests[i], h)
		}
	}
}
