package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// keyed returns a call with an idempotency key.
func keyed(path, body, key string) *http.Request {
	r := request(http.MethodPost, path, body)
	r.Header.Set(wire.Key, key)
	return r
}

// submitted submits tasks of kind k.
func submitted(t *testing.T, store queue.Store, tasks int) {
	t.Helper()
	var ids queue.IDs
	for range tasks {
		task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "k"}}
		if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
	}
}

// claimed executes a claim, and returns the IDs of its tasks.
func claimed(t *testing.T, h http.Handler, r *http.Request) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var out queue.Claimed
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("a claim is answered %d %s", w.Code, w.Body)
	}
	var ids []string
	for i := range out.Tasks {
		ids = append(ids, out.Tasks[i].ID.String())
	}
	return strings.Join(ids, " ")
}

// TestC4_CommandsOfNoneAndOfAll: over HTTP an empty list of IDs is for no task, and a
// command for all tasks says so.
func TestC4_CommandsOfNoneAndOfAll(t *testing.T) {
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{})
	defer s.Close()
	submitted(t, store, 3)
	for _, test := range []struct{ path, body, want string }{
		{wire.Command, `{"do":"cancel","filter":{"ids":[]}}`, `{"changed":0}`},
		{wire.Command, `{"do":"cancel","filter":{"ids":[]},"all":true}`, `{"changed":0}`},
		{wire.Command, `{"do":"cancel","filter":{}}`, "set All"},
		{wire.Command, `{"do":"cancel"}`, "set All"},
		{wire.Command, `{"do":"cancel","limit":1}`, "set All"},
		{wire.Find, `{"filter":{"ids":[]}}`, `{"tasks":[]`},
		{wire.Command, `{"do":"pause","filter":{"kind":"k"},"limit":1}`, `{"changed":1}`},
		{wire.Command, `{"do":"cancel","all":true}`, `{"changed":3}`},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, request(http.MethodPost, test.path, test.body))
		if !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s of %s is answered %d %s, want %s", test.path, test.body, w.Code, w.Body, test.want)
		}
	}
}

// TestC6_KeysAreOfOneCall: a second, different call under a key is refused; calls that
// may be repeated ignore keys.
func TestC6_KeysAreOfOneCall(t *testing.T) {
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{})
	defer s.Close()
	submitted(t, store, 3)
	first := claimed(t, s, keyed(wire.Claim, claim, "a"))
	if again := claimed(t, s, keyed(wire.Claim, claim, "a")); first == "" || again != first {
		t.Errorf("a claim of %s is %s, repeated", first, again)
	}
	for what, r := range map[string]*http.Request{
		"claim":   keyed(wire.Claim, strings.Replace(claim, `"max":1`, `"max":2`, 1), "a"),
		"command": keyed(wire.Command, `{"do":"pause","filter":{"kind":"none"}}`, "a"),
	} {
		if status, code := answered(t, s, r); status != http.StatusUnprocessableEntity || code != "key_reused" {
			t.Errorf("another %s under the same key is answered %d %s", what, status, code)
		}
	}
	for _, r := range []*http.Request{
		keyed(wire.Submit, `{"tasks":[{"id":"01890a5d-ac96-774b-bcce-b302099a8057","kind":"k"}]}`, "a"),
		keyed(wire.Find, `{}`, "a"),
	} {
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"state":"none"`) {
			t.Errorf("%s under a key that it does not need is answered %d %s", r.URL, w.Code, w.Body)
		}
	}
	if st, err := store.Stats(t.Context(), time.Now()); err != nil || st.Queues["default"].States[queue.Waiting] != 3 {
		t.Errorf("of 3 tasks and 1, of which 1 was claimed, there are %+v, %v", st, err)
	}
}

// TestC6_CutOffAmongOthers: a claim whose answer was lost stays in the cache, however
// many calls other workers make, and however many commands are given.
func TestC6_CutOffAmongOthers(t *testing.T) {
	const others = 5000
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{})
	defer s.Close()
	submitted(t, store, 1+others)
	first := claimed(t, s, keyed(wire.Claim, claim, "mine"))
	for i := range others {
		body := strings.Replace(claim, `"w"`, fmt.Sprintf(`"other %d"`, i%8), 1)
		if claimed(t, s, keyed(wire.Claim, body, fmt.Sprint("theirs ", i))) == "" {
			t.Fatal("there is nothing left to claim")
		}
		command := keyed(wire.Command, `{"do":"cancel","filter":{"ids":[]}}`, fmt.Sprint("command ", i))
		if status, _ := answered(t, s, command); status != http.StatusOK {
			t.Fatalf("a command is answered %d", status)
		}
	}
	if again := claimed(t, s, keyed(wire.Claim, claim, "mine")); again != first {
		t.Errorf("a claim of %s is %s, repeated", first, again)
	}
}

// TestC6_RepeatedTooLate: a repeated claim returns no lease that has expired or belongs
// to another worker.
func TestC6_RepeatedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		s := server.New(store, server.Config{})
		submitted(t, store, 1)
		first := claimed(t, s, keyed(wire.Claim, claim, "a"))
		time.Sleep(2 * time.Second)
		if _, err := store.Maintain(t.Context(), time.Now(), 0); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if again := claimed(t, s, keyed(wire.Claim, claim, "a")); again != "" {
				t.Errorf("the lost lease is given out again, of %s", again)
			}
			if next := claimed(t, s, keyed(wire.Claim, claim, "b")); next != first {
				t.Errorf("another claim gives %s, want %s", next, first)
			}
		}
	})
}

// leaves is a store whose calls block until their contexts end.
type leaves struct {
	memstore.Store
	begun chan struct{}
	ended chan error
}

func (l leaves) wait(ctx context.Context) error {
	l.begun <- struct{}{}
	<-ctx.Done()
	l.ended <- ctx.Err()
	return ctx.Err()
}

func (l leaves) Stats(ctx context.Context, _ time.Time) (queue.Stats, error) {
	return queue.Stats{}, l.wait(ctx)
}

func (l leaves) Claim(ctx context.Context, _ time.Time, _ queue.Claim) (queue.Claimed, error) {
	return queue.Claimed{}, l.wait(ctx)
}

// TestC5_ClientsThatLeave: the call of a client that has left is not logged as an error
// of the server; a call that is executed once continues up to the timeout.
func TestC5_ClientsThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := leaves{memstore.New(memstore.Config{}), make(chan struct{}), make(chan error, 1)}
		s := server.New(store, server.Config{Timeout: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, call := range []struct {
			r    *http.Request
			took time.Duration
			err  error
		}{
			{request("GET", wire.Stats, ""), 0, context.Canceled},
			{keyed(wire.Claim, claim, "a"), time.Minute, context.DeadlineExceeded},
		} {
			ctx, leave := context.WithCancel(call.r.Context())
			w := httptest.NewRecorder()
			served := make(chan struct{})
			go func() {
				s.ServeHTTP(w, call.r.WithContext(ctx))
				close(served)
			}()
			<-store.begun
			began := time.Now()
			leave()
			err := <-store.ended
			if took := time.Since(began); took != call.took || !errors.Is(err, call.err) {
				t.Errorf("%s ends after %s with %v", call.r.URL, took, err)
			}
			<-served
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s is answered %d", call.r.URL, w.Code)
			}
		}
		if log.Len() > 0 {
			t.Errorf("the log has %s", &log)
		}
	})
}

// unavailable is a store that returns ErrUnavailable.
type unavailable struct{ memstore.Store }

func (unavailable) Stats(context.Context, time.Time) (queue.Stats, error) {
	return queue.Stats{}, fmt.Errorf("%w: make room", queue.ErrUnavailable)
}

func (unavailable) Settings(context.Context) (map[string]queue.Configured, error) {
	return nil, errors.New("a fault")
}

// TestC6_LogsUnavailableOnceAMinute: clients that retry do not fill the log; every other
// internal error is logged.
func TestC6_LogsUnavailableOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := server.New(unavailable{}, server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		const seconds = 150
		for range seconds {
			if status, _ := answered(t, s, request("GET", wire.Stats, "")); status != http.StatusServiceUnavailable {
				t.Errorf("it is answered %d", status)
			}
			time.Sleep(time.Second)
		}
		text := log.String()
		if strings.Count(text, "\n") != 3 || strings.Count(text, `error="queue: the store is unavailable: make room"`) != 3 ||
			strings.Count(text, "more=0") != 1 || strings.Count(text, "more=59") != 2 {
			t.Errorf("the log has\n%s", text)
		}
		log.Reset()
		for range 2 {
			answered(t, s, request("GET", wire.Settings, ""))
		}
		if strings.Count(log.String(), `error="a fault"`) != 2 {
			t.Errorf("of two faults the log has\n%s", &log)
		}
	})
}

// late is a store with a time that no answer can have.
type late struct{ memstore.Store }

func (late) Claim(context.Context, time.Time, queue.Claim) (queue.Claimed, error) {
	return queue.Claimed{Next: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, nil
}

// TestC6_AnswersThatCannotBeEncoded: the call has been made, so that is not an error of the client, which
// would not make it again.
func TestC6_AnswersThatCannotBeEncoded(t *testing.T) {
	s := server.New(late{memstore.New(memstore.Config{})}, server.Config{})
	defer s.Close()
	packed, _ := wire.PackedPath(wire.Claim)
	for path, body := range map[string]string{wire.Claim: claim, packed: "\x01\x01w"} {
		if status, code := answered(t, s, request(http.MethodPost, path, body)); status != 500 || code != wire.Internal {
			t.Errorf("%s is answered %d %s", path, status, code)
		}
	}
}

// partly is a store whose commands change some tasks, and cannot read others.
type partly struct {
	queue.Store
	calls int
}

func (s *partly) Command(context.Context, time.Time, queue.Command) (int, error) {
	s.calls++
	return 3, fmt.Errorf("%w: the rest", queue.ErrUnavailable)
}

// A client does not repeat a command that has changed some tasks, also if servers are in between: it would change
// more than its limit. A repetition whose first answer was lost has the same answer.
func TestC11_CommandInPartIsNotRepeated(t *testing.T) {
	store := &partly{Store: memstore.New(memstore.Config{})}
	var last queue.Store = store
	for range 2 {
		front := httptest.NewServer(server.New(last, server.Config{Hosts: []string{"127.0.0.1"}, Token: secret}))
		defer front.Close()
		client, err := httpstore.Open(front.URL, httpstore.Config{Token: secret, Patience: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		last = client
	}
	_, err := last.Command(t.Context(), time.Now(), queue.Command{Do: queue.OrderPause, Limit: 3, All: true})
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "3 tasks were") || store.calls != 1 {
		t.Errorf("after %d calls: %v", store.calls, err)
	}
	s := server.New(store, server.Config{})
	store.calls = 0
	var answers [2]string
	for i := range answers {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, keyed(wire.Command, `{"do":"pause","limit":3,"all":true}`, "the key of a call"))
		answers[i] = w.Body.String()
	}
	if store.calls != 1 || answers[0] != answers[1] || !strings.Contains(answers[0], "in_part") {
		t.Errorf("%d calls have the answers %q", store.calls, answers)
	}
}
