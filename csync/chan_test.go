package csync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stintgo/stint/csync"
	"github.com/stintgo/stint/internal/seeded"
)

func ExampleChan() {
	ctx := context.Background()
	c := csync.NewChan[string](2)
	fmt.Println(c.Send(ctx, "a"), c.Send(ctx, ""))
	c.Close()
	c.Close()
	fmt.Println(c.Send(ctx, "late"))
	for v := range c.All(ctx) {
		fmt.Printf("%q\n", v)
	}
	_, err := c.Receive(ctx)
	fmt.Println(err)
	// Output:
	// <nil> <nil>
	// csync: channel is closed
	// "a"
	// ""
	// csync: channel is closed
}

// transfer is one blocking call of Send or Receive.
type transfer struct {
	cancel context.CancelCauseFunc
	value  int
	done   bool // read only when nothing moves
	err    error

	wantValue int // what the model says: its end, and with which value and error
	wantDone  bool
	wantErr   error
}

// end is what the model does with a call that is over.
func (c *transfer) end(value int, err error) {
	c.wantDone, c.wantValue, c.wantErr = true, value, err
}

// chanTest drives a channel, and a model of it in three slices.
type chanTest struct {
	t        *testing.T
	r        *rand.Rand
	c        *csync.Chan[int]
	capacity int
	values   int
	calls    []*transfer

	buffer             []int
	senders, receivers []*transfer
	closed             bool
}

func TestD5_ChanModel(t *testing.T) {
	r := seeded.Rand(t)
	for _, capacity := range []int{0, 1, 2, 7} {
		for range 30 {
			synctest.Test(t, func(t *testing.T) {
				ct := &chanTest{t: t, r: r, c: csync.NewChan[int](capacity), capacity: capacity}
				for range 300 {
					ct.step()
					ct.compare()
				}
				ct.close()
				ct.compare()
			})
		}
	}
}

func (ct *chanTest) step() {
	switch p := ct.r.IntN(1000); {
	case p < 350:
		ct.send()
	case p < 700:
		ct.receive()
	case p < 770:
		ct.trySend()
	case p < 840:
		ct.tryReceive()
	case p < 920:
		ct.cancel(&ct.senders)
	case p < 995:
		ct.cancel(&ct.receivers)
	default:
		ct.close()
	}
}

func (ct *chanTest) call(fn func(context.Context, *transfer)) *transfer {
	ctx, cancel := context.WithCancelCause(ct.t.Context())
	c := &transfer{cancel: cancel}
	ct.calls = append(ct.calls, c)
	go func() {
		fn(ctx, c)
		c.done = true
	}()
	synctest.Wait()
	return c
}

// nextValue is 0 at times, which is a value like any other.
func (ct *chanTest) nextValue() int {
	if ct.r.IntN(5) == 0 {
		return 0
	}
	ct.values++
	return ct.values
}

func (ct *chanTest) send() {
	v := ct.nextValue()
	c := ct.call(func(ctx context.Context, c *transfer) { c.value, c.err = v, ct.c.Send(ctx, v) })
	c.wantValue = v
	ct.senders = append(ct.senders, c)
	ct.settle()
}

func (ct *chanTest) receive() {
	c := ct.call(func(ctx context.Context, c *transfer) { c.value, c.err = ct.c.Receive(ctx) })
	ct.receivers = append(ct.receivers, c)
	ct.settle()
}

// settle is the rule of a channel, asked again until nothing moves.
func (ct *chanTest) settle() {
	for {
		switch {
		case ct.closed && len(ct.senders) > 0:
			ct.senders[0].end(ct.senders[0].wantValue, csync.ErrClosed)
			ct.senders = ct.senders[1:]
		case len(ct.buffer) > 0 && len(ct.receivers) > 0:
			ct.receivers[0].end(ct.buffer[0], nil)
			ct.receivers, ct.buffer = ct.receivers[1:], ct.buffer[1:]
		case len(ct.senders) > 0 && (len(ct.buffer) < ct.capacity || len(ct.receivers) > 0):
			ct.buffer = append(ct.buffer, ct.senders[0].wantValue)
			ct.senders[0].end(ct.senders[0].wantValue, nil)
			ct.senders = ct.senders[1:]
		case ct.closed && len(ct.receivers) > 0:
			ct.receivers[0].end(0, csync.ErrClosed)
			ct.receivers = ct.receivers[1:]
		default:
			return
		}
	}
}

func (ct *chanTest) trySend() {
	v := ct.nextValue()
	want := &transfer{wantValue: v}
	ct.senders = append(ct.senders, want)
	ct.settle()
	ct.senders = slices.DeleteFunc(ct.senders, func(c *transfer) bool { return c == want })
	ok, err := ct.c.TrySend(v)
	if ok != (want.wantDone && want.wantErr == nil) || !errors.Is(err, want.wantErr) {
		ct.t.Fatalf("TrySend: %v, %v, want %v, %v", ok, err, want.wantDone, want.wantErr)
	}
}

func (ct *chanTest) tryReceive() {
	want := &transfer{}
	ct.receivers = append(ct.receivers, want)
	ct.settle()
	ct.receivers = slices.DeleteFunc(ct.receivers, func(c *transfer) bool { return c == want })
	v, ok, err := ct.c.TryReceive()
	if v != want.wantValue || ok != (want.wantDone && want.wantErr == nil) || !errors.Is(err, want.wantErr) {
		ct.t.Fatalf("TryReceive: %v, %v, %v, want %+v", v, ok, err, want)
	}
}

func (ct *chanTest) cancel(from *[]*transfer) {
	if len(*from) == 0 {
		return
	}
	i := ct.r.IntN(len(*from))
	c := (*from)[i]
	c.cancel(errLeft)
	c.end(c.wantValue, errLeft)
	*from = slices.Delete(slices.Clone(*from), i, i+1)
}

func (ct *chanTest) close() {
	ct.c.Close()
	ct.closed = true
	ct.settle()
}

func (ct *chanTest) compare() {
	ct.t.Helper()
	synctest.Wait()
	for _, c := range ct.calls {
		if c.done != c.wantDone || c.done && (c.value != c.wantValue || !errors.Is(c.err, c.wantErr)) {
			ct.t.Fatalf("a call has returned %v: %d, %v; want %v: %d, %v",
				c.done, c.value, c.err, c.wantDone, c.wantValue, c.wantErr)
		}
	}
	ct.calls = slices.DeleteFunc(ct.calls, func(c *transfer) bool { return c.done })
	if got := ct.c.Len(); got != len(ct.buffer) || ct.c.Cap() != ct.capacity {
		ct.t.Fatalf("Len() = %d, want %d", got, len(ct.buffer))
	}
}

func TestD5_ChanRefusesEndedContext(t *testing.T) {
	c := csync.NewChan[int](1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	if err := c.Send(ctx, 1); !errors.Is(err, errLeft) || c.Len() != 0 {
		t.Errorf("Send: %v, %d in the buffer; want the cause", err, c.Len())
	}
	_, _ = c.TrySend(1)
	if v, err := c.Receive(ctx); v != 0 || !errors.Is(err, errLeft) || c.Len() != 1 {
		t.Errorf("Receive: %d, %v; want the cause", v, err)
	}
	for range c.All(ctx) {
		t.Error("All gave a value")
	}
}

func TestD5_ChanAllCanBeLeft(t *testing.T) {
	c := csync.NewChan[int](3)
	for i := range 3 {
		_, _ = c.TrySend(i)
	}
	for v := range c.All(t.Context()) {
		if v == 1 {
			break
		}
	}
	if v, ok, err := c.TryReceive(); v != 2 || !ok || err != nil {
		t.Errorf("after the break: %d, %v, %v; want 2", v, ok, err)
	}
}

func TestD5_ChanZeroValueIsRendezvous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c csync.Chan[error]
		if ok, err := c.TrySend(nil); ok || err != nil || c.Cap() != 0 {
			t.Errorf("TrySend without a receiver: %v, %v", ok, err)
		}
		go func() { _ = c.Send(t.Context(), nil) }()
		if v, err := c.Receive(t.Context()); v != nil || err != nil {
			t.Errorf("Receive: %v, %v", v, err)
		}
	})
	mustPanic(t, "csync: a channel with a capacity of -1; use 0 or more", func() { csync.NewChan[int](-1) })
}

// TestD5_ChanStress sends from many goroutines, some of which give up, and closes
// in the middle: what was sent is received once, and nothing else is.
func TestD5_ChanStress(t *testing.T) {
	for _, capacity := range []int{0, 3} {
		c := csync.NewChan[int](capacity)
		var (
			sent, received   [4][]int
			senders, getters sync.WaitGroup
		)
		for g := range sent {
			senders.Go(func() { sent[g] = sendUntilClosed(c, g) })
			getters.Go(func() {
				for v := range c.All(t.Context()) {
					received[g] = append(received[g], v)
					if v == 3000 {
						c.Close()
					}
				}
			})
		}
		senders.Wait()
		getters.Wait()
		got, want := slices.Concat(received[:]...), slices.Concat(sent[:]...)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("capacity %d: sent %d values and received %d", capacity, len(want), len(got))
		}
	}
}

// sendUntilClosed sends g, g+4, g+8 …, and returns those that were sent.
func sendUntilClosed(c *csync.Chan[int], g int) (sent []int) {
	for v := g; ; v += 4 {
		ctx, cancel := context.WithCancelCause(context.Background())
		if v%3 == 1 { // gives up
			go cancel(errLeft)
		}
		err := c.Send(ctx, v)
		cancel(nil)
		switch {
		case err == nil:
			sent = append(sent, v)
		case errors.Is(err, csync.ErrClosed):
			return sent
		}
	}
}

// TestD5_ChanKeepsNothingAlive receives a value from the buffer and one from a
// sender that waited, and looks whether the channel still points to them.
func TestD5_ChanKeepsNothingAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := csync.NewChan[*[64]int](1)
		send := func() weak.Pointer[[64]int] {
			v := new([64]int)
			_ = c.Send(t.Context(), v)
			return weak.Make(v)
		}
		sent := make(chan weak.Pointer[[64]int], 2)
		go func() {
			sent <- send()
			sent <- send()
		}()
		synctest.Wait()
		for range 2 {
			_, _ = c.Receive(t.Context())
		}
		synctest.Wait()
		runtime.GC()
		for i := range 2 {
			if (<-sent).Value() != nil {
				t.Errorf("value %d is kept alive", i)
			}
		}
		runtime.KeepAlive(c)
	})
}

func TestD5_ChanAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	buffered, direct := csync.NewChan[int](1), csync.NewChan[int](0)
	if n := testing.AllocsPerRun(1000, func() {
		_ = buffered.Send(ctx, 1)
		_, _ = buffered.Receive(ctx)
	}); n != 0 {
		t.Errorf("buffered: %v allocs", n)
	}
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for v := range direct.All(ctx) {
			_ = v
		}
	})
	if n := testing.AllocsPerRun(1000, func() { _ = direct.Send(ctx, 1) }); n != 0 {
		t.Errorf("direct: %v allocs", n)
	}
	direct.Close()
	receiver.Wait()
}

func BenchmarkChan(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	c := csync.NewChan[int](1)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Send(ctx, 1)
		_, _ = c.Receive(ctx)
	}
}
