package httpstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC1_SignalAfterARestart: what was submitted while there was no connection is
// signalled by the first thing that comes by the next one.
func TestC1_SignalAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		s := n.open(httpstore.Config{})
		a, _ := s.Listen("") // before there is any server
		quiet := func() {
			t.Helper()
			synctest.Wait()
			select {
			case <-a:
				t.Error("there is a signal, and nothing has happened")
			default:
			}
		}
		time.Sleep(time.Minute)
		quiet()
		for i := range 3 {
			stop := n.start(store, server.Config{})
			<-a
			time.Sleep(time.Minute) // the server says that it lives
			quiet()
			b, stopB := s.Listen(fmt.Sprint("queue ", i)) // begins with a signal, and one for those that were there
			<-b
			<-a
			stopB()
			submit(t, store)
			<-a
			synctest.Wait()
			for len(a) > 0 {
				<-a // a task may be signalled more than once
			}
			stop()
			time.Sleep(time.Minute)
			quiet()
		}
	})
}

func submit(t *testing.T, store queue.Store) queue.ID {
	t.Helper()
	var ids queue.IDs
	id := ids.New(time.Now())
	tasks := []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "work"}}}
	if _, err := store.Submit(t.Context(), time.Now(), tasks); err != nil {
		t.Fatal(err)
	}
	return id
}

// Signals reach all listeners, in the server's process and in all clients.
func TestC1_SignalsReachAllListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		n.start(store, server.Config{})
		all := make([]<-chan struct{}, 0, 10)
		listen := func(s queue.Store, name string) {
			ready, stop := s.Listen(name)
			t.Cleanup(stop)
			all = append(all, ready)
		}
		listen(store, "default")
		for range 3 {
			client := n.open(httpstore.Config{})
			listen(client, "")
			listen(client, "default")
		}
		for range 3 {
			synctest.Wait()
			for _, ready := range all {
				for len(ready) > 0 {
					<-ready
				}
			}
			submit(t, store)
			for _, ready := range all {
				<-ready
			}
		}
	})
}

// TestC4_WatchEndsWithItsServer: what is missed then is not known, so Watch does
// not go on as if nothing had been.
func TestC4_WatchEndsWithItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		stop := n.start(store, server.Config{})
		s := n.open(httpstore.Config{})
		events, ended := make(chan queue.Event, 9), make(chan error, 1)
		go func() { ended <- s.Watch(t.Context(), func() {}, func(e queue.Event) { events <- e }) }()
		synctest.Wait()
		time.Sleep(time.Hour) // it is not given up because nothing happens
		id := submit(t, store)
		if e := <-events; e.ID != id || e.On != queue.OnSubmit || e.From != 0 || e.Missed != 0 {
			t.Errorf("the event is %+v", e)
		}
		stop()
		if err := <-ended; !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("Watch ends with %v", err)
		}
		n.start(store, server.Config{})
		go func() { ended <- s.Watch(t.Context(), func() {}, func(queue.Event) {}) }()
		synctest.Wait()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("Watch of a store that the server has closed ends with %v", err)
		}
		never := func() { t.Error("a watch of a store that the server has closed begins") }
		if err := s.Watch(t.Context(), never, func(queue.Event) {}); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("Watch of a store that the server has closed before ends with %v", err)
		}
		if _, err := s.Stats(t.Context(), time.Now()); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("the statistics of a store that the server has closed are %v", err)
		}
	})
}

// TestC6_CloseEndsWhatWaits: calls, watches and signals, and their goroutines.
func TestC6_CloseEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "http://localhost", httpstore.Config{Transport: hangs{}})
		ended := make(chan error, 2)
		go func() {
			_, err := s.Stats(t.Context(), time.Now())
			ended <- err
		}()
		go func() { ended <- s.Watch(context.Background(), func() {}, func(queue.Event) {}) }()
		_, stop := s.Listen("a")
		defer stop()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, queue.ErrClosed) {
				t.Errorf("a call that waited ends with %v", err)
			}
		}
		s.Listen("b")
		_, late := s.Listen("a")
		late()
	})
}

// TestC1_ClocksApart: a worker waits as long as a rate says, though the server
// has another time of day.
func TestC1_ClocksApart(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{t: t}
			n.start(memstore.New(memstore.Config{}), server.Config{})
			s := n.open(httpstore.Config{})
			mine := func() time.Time { return time.Now().Add(-ahead) }
			slow := queue.Settings{Rate: queue.Rate{PerSecond: 0.1}}
			if err := s.Configure(t.Context(), mine(), "", queue.Change{Set: slow}); err != nil {
				t.Fatal(err)
			}
			submit(t, s)
			submit(t, s)
			claim := queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 2, Lease: time.Minute}
			got, err := s.Claim(t.Context(), mine(), claim)
			if err != nil || len(got.Tasks) != 1 {
				t.Fatalf("the claim gives %+v, %v", got, err)
			}
			if wait := got.Next.Sub(mine()); wait != 10*time.Second {
				t.Errorf("the next task is to be claimed in %s", wait)
			}
			next, err := s.Maintain(t.Context(), mine(), 10)
			if wait := next.Sub(mine()); err != nil || wait != time.Minute {
				t.Errorf("something is due in %s, %v", wait, err)
			}
		})
	}
}
