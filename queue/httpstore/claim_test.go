package httpstore_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// lostAnswers loses the answers of some calls that the server has made.
type lostAnswers struct {
	http.RoundTripper
	to   string       // the end of the paths of these calls
	away *atomic.Bool // set while answers are lost
}

var errReset = errors.New("connection reset")

func (l lostAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.RoundTripper.RoundTrip(r)
	if err != nil || !l.away.Load() || !strings.HasSuffix(r.URL.Path, l.to) {
		return res, err
	}
	return nil, errors.Join(errReset, res.Body.Close())
}

// claims is a store of a server whose answers to claims are lost when away is set.
func claims(
	t *testing.T, n *network, tasks int, payload []byte,
) (s *httpstore.Store, inner queue.Store, away *atomic.Bool) {
	t.Helper()
	inner, away = memstore.New(memstore.Config{}), new(atomic.Bool)
	n.start(inner, server.Config{})
	transport := &http.Transport{DialContext: n.dial}
	t.Cleanup(transport.CloseIdleConnections)
	s = open(t, "http://localhost", httpstore.Config{Transport: lostAnswers{transport, "/claim", away}})
	var ids queue.IDs
	for range tasks {
		_, err := s.Submit(t.Context(), time.Now(), []queue.NewTask{
			{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "work", Payload: payload}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, inner, away
}

func work(most int) queue.Claim {
	return queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: most, Lease: time.Minute}
}

// TestC6_ClaimsWithoutAnAnswer: the tasks of a claim whose answer was lost for
// longer than the client waits are returned to the worker's next claim, or released.
// No crash is counted, whether the next claim is for more, for fewer, or late.
func TestC6_ClaimsWithoutAnAnswer(t *testing.T) {
	for _, test := range []struct{ first, second, want int }{{1, 1, 1}, {3, 2, 2}, {2, 5, 5}, {5, 64, 6}} {
		for _, late := range []time.Duration{0, 30 * time.Second, 2 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				s, inner, away := claims(t, &network{t: t}, 6, nil)
				away.Store(true)
				if _, err := s.Claim(t.Context(), time.Now(), work(test.first)); !errors.Is(err, queue.ErrUnavailable) {
					t.Fatalf("the first claim is %v", err)
				}
				time.Sleep(late)
				away.Store(false)
				got, err := s.Claim(t.Context(), time.Now(), work(test.second))
				if err != nil || len(got.Tasks) != test.want {
					t.Fatalf("%+v after %s: the second claim has %d tasks, %v", test, late, len(got.Tasks), err)
				}
				for _, task := range got.Tasks {
					if left := time.Until(task.Lease.Until); left < 58*time.Second {
						t.Errorf("%+v after %s: a lease ends in %s", test, late, left)
					}
				}
				time.Sleep(50 * time.Second)
				if _, err := inner.Maintain(t.Context(), time.Now(), 0); err != nil {
					t.Fatal(err)
				}
				if n := count(t, inner, queue.Running); n != test.want {
					t.Errorf("%+v after %s: %d tasks run, and %d are worked on", test, late, n, test.want)
				}
				found, err := inner.Find(t.Context(), queue.Filter{}, queue.Page{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range found {
					if found[i].Crashes != 0 {
						t.Errorf("%+v after %s: a task has crashed: %+v", test, late, found[i].Steps)
					}
				}
			})
		}
	}
}

// TestC6_LargeClaims: also of a claim of many MiB the repetition gets the tasks
// that the lost answer had.
func TestC6_LargeClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner, away := claims(t, &network{t: t}, 40, make([]byte, 1<<20))
		away.Store(true)
		time.AfterFunc(100*time.Millisecond, func() { away.Store(false) })
		const most = wire.BytesMost >> 20 // tasks that an answer has room for
		got, err := s.Claim(t.Context(), time.Now(), work(20))
		if err != nil || len(got.Tasks) != most || len(got.Tasks[most-1].Payload) != 1<<20 {
			t.Errorf("a claim of 20 has %d tasks, %v", len(got.Tasks), err)
		}
		if n := count(t, inner, queue.Running); n != most {
			t.Errorf("%d tasks run", n)
		}
	})
}

// TestC6_RepeatedClaimsAreTheSame: what is read anew for a repetition is what the
// first answer had.
func TestC6_RepeatedClaimsAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner, away := claims(t, &network{t: t}, 3, []byte("payload"))
		away.Store(true)
		time.AfterFunc(100*time.Millisecond, func() { away.Store(false) })
		got, err := s.Claim(t.Context(), time.Now(), work(3))
		if err != nil {
			t.Fatal(err)
		}
		want := memstore.New(memstore.Config{})
		found, err := inner.Find(t.Context(), queue.Filter{}, queue.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range found {
			as := []queue.NewTask{{ID: task.ID, Spec: task.Spec}}
			if _, err := want.Submit(t.Context(), task.Steps[0].At, as); err != nil {
				t.Fatal(err)
			}
		}
		direct, err := want.Claim(t.Context(), got.Tasks[0].Changed, queue.Claim{
			Worker: "w", Kinds: []string{"work"}, Max: 3, Lease: time.Minute, Remote: true,
		})
		if err != nil || !reflect.DeepEqual(direct, got) {
			t.Errorf("the repetition is answered\n%+v, want\n%+v", got, direct)
		}
	})
}

// TestC6_ServersThatEnd: a server that says that it is not available is asked
// again, as one that says nothing; what it says in the end is the answer.
func TestC6_ServersThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		stop := n.start(store, server.Config{})
		s := n.open(httpstore.Config{})
		began := time.Now()
		_, err := s.Stats(t.Context(), time.Now())
		if took := time.Since(began); !errors.Is(err, queue.ErrUnavailable) || took != time.Second ||
			!strings.Contains(err.Error(), "is closed") {
			t.Errorf("the server's end is %v after %s", err, took)
		}
		time.AfterFunc(500*time.Millisecond, func() {
			stop()
			n.start(memstore.New(memstore.Config{}), server.Config{})
		})
		if _, err := s.Stats(t.Context(), time.Now()); err != nil {
			t.Errorf("the next server is not found: %v", err)
		}
	})
}

// TestC6_LargePages: a page of more tasks than a server gives at once is whole.
func TestC6_LargePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := claims(t, &network{t: t}, 2*wire.PageMost+1, nil)
		all, err := s.Find(t.Context(), queue.Filter{}, queue.Page{Limit: 1 << 40})
		if err != nil || len(all) != 2*wire.PageMost+1 {
			t.Fatalf("there are %d tasks, %v", len(all), err)
		}
		for _, limit := range []int{wire.PageMost - 1, wire.PageMost, wire.PageMost + 1, 2 * wire.PageMost} {
			some, err := s.Find(t.Context(), queue.Filter{}, queue.Page{Limit: limit})
			if err != nil || len(some) != limit || some[limit-1].ID != all[limit-1].ID {
				t.Errorf("a page of %d has %d tasks, %v", limit, len(some), err)
			}
		}
	})
}
