package httpstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// fixedAnswer is a server that gives every request the same answer.
type fixedAnswer struct {
	status    int
	typ, body string
}

func (s fixedAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Content-Type": {s.typ}}, Request: r,
		Body: io.NopCloser(strings.NewReader(s.body)),
	}, nil
}

// everyCall makes each call of a store, and returns what it was answered.
func everyCall(ctx context.Context, s queue.Store) map[string]error {
	id, now := queue.ID{1}, time.Now()
	errs := make(map[string]error)
	receipts, err := s.Submit(ctx, now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "k"}}})
	errs["Submit"] = complete(err, len(receipts) == 1)
	claimed, err := s.Claim(ctx, now, queue.Claim{Worker: "w", Max: 2, Lease: time.Second})
	errs["Claim"] = complete(err, len(claimed.Tasks) <= 2)
	answers, err := s.Settle(ctx, now, []queue.Outcome{{ID: id, Kind: queue.OutcomeSuccess}})
	errs["Settle"] = complete(err, len(answers) == 1)
	heartbeats, err := s.Heartbeat(ctx, now, queue.Worker{Name: "w"}, []queue.Heartbeat{{ID: id}})
	errs["Heartbeat"] = complete(err, len(heartbeats) == 1)
	_, errs["Command"] = s.Command(ctx, now, queue.Command{Do: queue.OrderPause, All: true})
	_, errs["Find"] = s.Find(ctx, queue.Filter{}, queue.Page{})
	_, errs["Explain"] = s.Explain(ctx, now, id)
	_, errs["Stats"] = s.Stats(ctx, now)
	errs["Configure"] = s.Configure(ctx, now, "", queue.Change{})
	errs["PauseQueue"] = s.PauseQueue(ctx, now, "", nil)
	_, errs["Settings"] = s.Settings(ctx)
	_, errs["Schedules"] = s.Schedules(ctx)
	errs["Reschedule"] = s.Reschedule(ctx, now, queue.Reschedule{Name: "s"})
	_, errs["Maintain"] = s.Maintain(ctx, now, 1)
	errs["Watch"] = s.Watch(ctx, func() {}, func(queue.Event) {})
	return errs
}

var errIncomplete = errors.New("the answer is not that to the call, and is taken for it")

func complete(err error, so bool) error {
	if err == nil && !so {
		return errIncomplete
	}
	return err
}

// An answer that does not come from a stint server is an error that says
// so, and never one that says that something was done, or wrong.
func TestC6_AnswersOfOtherServers(t *testing.T) {
	for what, stranger := range map[string]fixedAnswer{
		"a page":                       {200, "text/html", "<html>hello</html>"},
		"nothing there":                {404, "text/plain", "404 page not found"},
		"another version":              {404, wire.ProblemJSON, `{"code":"unknown_call","detail":"no such call"}`},
		"a redirection":                {302, "text/html", ""},
		"no JSON":                      {200, wire.JSON, "{"},
		"other JSON":                   {200, wire.JSON, `[1]`},
		"a problem that is none":       {400, wire.ProblemJSON, "<html>"},
		"a problem of a later version": {400, wire.ProblemJSON, `{"code":"surprise","detail":"boo"}`},
		"a gateway":                    {502, "text/html", "bad gateway"},
	} {
		s := open(t, "http://127.0.0.1:1/", httpstore.Config{Transport: stranger})
		for call, err := range everyCall(t.Context(), s) {
			if !errors.Is(err, queue.ErrUnavailable) {
				t.Errorf("%s answers %s, and that is %v", what, call, err)
			}
		}
	}
	short := open(t, "http://127.0.0.1:1/", httpstore.Config{Transport: fixedAnswer{200, wire.JSON, "{}"}})
	for _, call := range []string{"Submit", "Settle", "Heartbeat"} {
		if err := everyCall(t.Context(), short)[call]; !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("an answer without what was asked for is %v for %s", err, call)
		}
	}
}

// FuzzAnswers reads any bytes as an answer: without a panic, and without taking
// one for another.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `null`, `[]`, `{"receipts":[{"id":"01890a5d-ac96-774b-bcce-b302099a8057"}]}`, `{"answers":[null]}`,
		`{"answers":[{"code":"stale"}]}`, `{"tasks":[{"steps":[{"on":"claim","to":"running","token":"12"}]}],"next":"x"}`,
		"\n{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"to\":\"none\"}\n\n", `{"code":"invalid","detail":"x"}`,
	} {
		for _, typ := range []string{wire.JSON, wire.ProblemJSON, wire.Lines} {
			f.Add(200, typ, body)
		}
	}
	f.Fuzz(func(t *testing.T, status int, typ, body string) {
		s := open(t, "http://127.0.0.1:1", httpstore.Config{Transport: fixedAnswer{status, typ, body}})
		for call, err := range everyCall(t.Context(), s) {
			if errors.Is(err, errIncomplete) {
				t.Errorf("%s: %v", call, err)
			}
		}
	})
}

// hangs is a server that takes a request and says nothing, or nothing more.
type hangs struct{ begins bool }

func (h hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	if !h.begins {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(r.Context().Err()) })
	header := http.Header{"Content-Type": {wire.Lines}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, Request: r}, nil
}

// TestC6_ServerHangs: a server that does not answer any more is given up.
func TestC6_ServerHangs(t *testing.T) {
	for _, begins := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, "http://localhost", httpstore.Config{Transport: hangs{begins}, Timeout: 5 * time.Second})
			began := time.Now()
			_, err := s.Claim(t.Context(), began, queue.Claim{Worker: "w", Max: 1, Lease: time.Second})
			if took := time.Since(began); !errors.Is(err, queue.ErrUnavailable) || took != 5*time.Second {
				t.Errorf("a claim that is not answered is %v after %s", err, took)
			}
			began = time.Now()
			err = s.Watch(t.Context(), func() {}, func(queue.Event) {})
			if took := time.Since(began); !errors.Is(err, queue.ErrUnavailable) || took != 3*wire.Alive {
				t.Errorf("a watch that hears nothing is %v after %s", err, took)
			}
		})
	}
}

func TestC6_Addresses(t *testing.T) {
	for _, bad := range []string{
		"", "unix:", "unix:" + strings.Repeat("x", 108), "stint.sock", "127.0.0.1:7117", "ftp://host", "http://",
		"http://host?a=b", "http://host#a", "http://[::1", "http:/host",
	} {
		if s, err := httpstore.Open(bad, httpstore.Config{}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("the address %q is %v, %v", bad, s, err)
		}
	}
	for _, good := range []string{"unix:a", "unix:/run/a", "http://127.0.0.1:7117", "https://host/a/", "http://[::1]:1"} {
		open(t, good, httpstore.Config{})
	}
	for _, bad := range []httpstore.Config{{Patience: -1}, {Timeout: -1}, {WatchBuffer: -1}} {
		if _, err := httpstore.Open("unix:a", bad); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("the configuration %+v is %v", bad, err)
		}
	}
}

// TestC6_NamesThatAreNoText: a store refuses those, and JSON would make others
// of them.
func TestC6_NamesThatAreNoText(t *testing.T) {
	s := open(t, "http://127.0.0.1:1", httpstore.Config{Transport: fixedAnswer{200, wire.JSON, `{"receipts":[{}]}`}})
	for _, spec := range []queue.Spec{
		{Kind: "\xff"},
		{Kind: "k", Options: queue.Options{Queue: "\xff"}},
		{Kind: "k", Options: queue.Options{Key: "\xff"}},
		{Kind: "k", Options: queue.Options{Unique: "\xff"}},
		{Kind: "k", Options: queue.Options{Group: "\xff"}},
		{Kind: "k", Options: queue.Options{Trace: "\xff"}},
		{Kind: "k", Options: queue.Options{Labels: map[string]string{"\xff": ""}}},
		{Kind: "k", Options: queue.Options{Labels: map[string]string{"l": "\xff"}}},
		{Kind: "k", Options: queue.Options{Tier: 9}},
	} {
		tasks := []queue.NewTask{{ID: queue.ID{1}, Spec: spec}}
		if _, err := s.Submit(t.Context(), time.Now(), tasks); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v is %v", spec, err)
		}
	}
}

// TestC6_QuestionsThatAreNoText: nor may a call be about others than it names.
func TestC6_QuestionsThatAreNoText(t *testing.T) {
	s := open(t, "http://127.0.0.1:1", httpstore.Config{Transport: fixedAnswer{200, wire.JSON, `{"changed":9}`}})
	const bad = "\xff"
	ctx, now := t.Context(), time.Now()
	calls := map[string]error{
		"Configure":  s.Configure(ctx, now, bad, queue.Change{}),
		"PauseQueue": s.PauseQueue(ctx, now, bad, nil),
		"a pause":    s.PauseQueue(ctx, now, "", &queue.Pause{Reason: bad}),
	}
	for _, c := range []queue.Claim{{Worker: bad}, {Queue: bad}, {Kinds: []string{"k", bad}}} {
		_, calls[fmt.Sprintf("Claim %+v", c)] = s.Claim(ctx, now, c)
	}
	for _, w := range []queue.Worker{
		{Name: bad}, {Kinds: map[string][]string{bad: nil}}, {Kinds: map[string][]string{"": {bad}}},
	} {
		_, calls[fmt.Sprintf("Heartbeat %+v", w)] = s.Heartbeat(ctx, now, w, nil)
	}
	for _, f := range []queue.Filter{
		{Queue: bad},
		{Kind: bad},
		{Key: bad},
		{Group: bad},
		{Worker: bad},
		{Error: bad},
		{Labels: map[string]string{"l": bad}},
	} {
		_, calls[fmt.Sprintf("Command %+v", f)] = s.Command(ctx, now, queue.Command{Do: queue.OrderForget, Filter: f})
		_, calls[fmt.Sprintf("Find %+v", f)] = s.Find(ctx, f, queue.Page{})
	}
	for call, err := range calls {
		if !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s is %v", call, err)
		}
	}
}

// recorder records the bodies of calls.
type recorder struct {
	fixedAnswer
	sent *bytes.Buffer
}

func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := r.sent.ReadFrom(req.Body); err != nil {
		return nil, err
	}
	return r.fixedAnswer.RoundTrip(req)
}

// TestC8_CheckpointsThatAreEmpty: nil keeps what there is, and empty is a new one.
func TestC8_CheckpointsThatAreEmpty(t *testing.T) {
	var sent bytes.Buffer
	listening := recorder{fixedAnswer{200, wire.JSON, `{"answers":[{},{}]}`}, &sent}
	s := open(t, "http://127.0.0.1:1", httpstore.Config{Transport: listening})
	heartbeats := []queue.Heartbeat{{Checkpoint: nil}, {Checkpoint: []byte{}}}
	if _, err := s.Heartbeat(t.Context(), time.Now(), queue.Worker{}, heartbeats); err != nil {
		t.Fatal(err)
	}
	if text := sent.String(); strings.Count(text, `"checkpoint":""`) != 1 || strings.Count(text, "checkpoint") != 1 {
		t.Errorf("it says %s", text)
	}
}
