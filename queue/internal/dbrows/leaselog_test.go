package dbrows_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/machine"
)

// entries reserves slots for leases with new tokens.
func entries(t *testing.T, l *dbrows.LeaseLog, tokens ...queue.Token) (all []machine.SlotEntry) {
	t.Helper()
	for _, token := range tokens {
		slot, err := l.Reserve(token)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, machine.SlotEntry{Slot: slot, LeaseEntry: machine.LeaseEntry{
			ID: queue.ID{15: byte(token)}, Seq: uint64(token), Token: token, At: time.Unix(0, 0).UTC(), Worker: "w",
		}})
	}
	return all
}

// recorded returns the tokens that the next leader finds, in order.
func recorded(t *testing.T, s *server) (tokens []queue.Token) {
	t.Helper()
	s.endLease()
	r := open(t, s.connect(t, nil), dbrows.Config{})
	defer closes(t, r)
	if err := r.LeaseLog().Recall(func(_ int, e machine.LeaseEntry) { tokens = append(tokens, e.Token) }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(tokens)
	return tokens
}

// The calls that come during a write share the next one.
func TestLeaseLog_Combines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := s.connect(t, func(o op) (f fault) {
			if o == opPut {
				f.late = time.Second
			}
			return f
		})
		r := open(t, c, dbrows.Config{})
		l := r.LeaseLog()
		before := time.Now()
		var want []queue.Token
		var wg sync.WaitGroup
		for round := range 3 { // the calls of each are during the write of the one before
			for i := range 10 {
				token := queue.Token(1 + 10*round + i)
				want = append(want, token)
				wg.Go(func() {
					if n, err := l.Put(entries(t, l, token)); n != 1 || err != nil {
						t.Errorf("Put: %d, %v", n, err)
					}
				})
				synctest.Wait()
				wg.Go(func() {
					if n, err := l.Put(nil); n != 0 || err != nil {
						t.Errorf("Put without entries: %d, %v", n, err)
					}
				})
			}
			time.Sleep(time.Second + 1)
		}
		wg.Wait()
		// The first call writes alone, and the others of its round with the second round.
		if n, took := c.count(opPut), time.Since(before); n != 4 || took > 5*time.Second {
			t.Errorf("30 calls make %d writes, and take %s", n, took)
		}
		closes(t, r)
		if got := recorded(t, s); !slices.Equal(got, want) {
			t.Errorf("the next leader finds %v", got)
		}
	})
}

// A write that fails is an error of its calls only. Put ends after 3 s, with the reason.
func TestLeaseLog_Fails(t *testing.T) {
	for name, f := range map[string]fault{"fails": {before: errBroken}, "silent": {late: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			c := s.connect(t, nil)
			r := open(t, c, dbrows.Config{Lease: time.Minute})
			l := r.LeaseLog()
			c.fault = func(o op) fault {
				if o == opPut {
					return f
				}
				return fault{}
			}
			before := time.Now()
			var wg sync.WaitGroup
			for token := queue.Token(1); token < 5; token++ {
				wg.Go(func() {
					n, err := l.Put(entries(t, l, token))
					if n != 0 || err == nil || !strings.Contains(err.Error(), "no task starts") ||
						f.before != nil && !errors.Is(err, f.before) {
						t.Errorf("%s: Put: %d, %v", name, n, err)
					}
				})
				synctest.Wait()
			}
			wg.Wait()
			if took := time.Since(before); took > 6*time.Second {
				t.Errorf("%s: two writes fail in %s", name, took)
			}
			c.fault = func(op) fault { return fault{} }
			if n, err := l.Put(entries(t, l, 9)); n != 1 || err != nil {
				t.Errorf("%s: then: %d, %v", name, n, err)
			}
			closes(t, r)
			if got := recorded(t, s); !slices.Equal(got, []queue.Token{9}) {
				t.Errorf("%s: the next leader finds %v", name, got)
			}
			c.late.Wait()
		})
	}
}

// The entries of a write share rows of less than 2 kB. A row is written again when its last
// lease has ended, so the log does not grow.
func TestLeaseLog_EntriesShareRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		r := open(t, s.connect(t, nil), dbrows.Config{})
		l := r.LeaseLog()
		var alive []queue.Token
		for round := range queue.Token(10) {
			var tokens []queue.Token
			for i := range queue.Token(100) {
				tokens = append(tokens, 1+100*round+i)
			}
			all := entries(t, l, tokens...)
			if n, err := l.Put(all); n != 100 || err != nil {
				t.Fatalf("Put: %d, %v", n, err)
			}
			for _, e := range all[1:] { // the first row of each write has a lease that is alive
				l.Free(e.Slot, e.Token)
			}
			alive = append(alive, all[0].Token)
		}
		for number, row := range s.leases {
			if n := len(row.entries); n >= 2000 {
				t.Errorf("row %d has %d bytes", number, n)
			}
		}
		if n := len(s.leases); n > 4+9 {
			t.Errorf("10 writes of 100 entries each take %d rows", n)
		}
		closes(t, r)
		got := recorded(t, s)
		for _, token := range alive {
			if !slices.Contains(got, token) {
				t.Errorf("the lease %d is not recorded", token)
			}
		}
	})
}

// A lease of a row is alive while others of the same row have ended, also for the leader that
// has read the row: it does not write the row again.
func TestLeaseLog_RowIsKeptForItsLastLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		r := open(t, s.connect(t, nil), dbrows.Config{})
		l := r.LeaseLog()
		all := entries(t, l, 1, 2, 3)
		if _, err := l.Put(all); err != nil {
			t.Fatal(err)
		}
		closes(t, r)
		for next := queue.Token(4); next < 8; next++ {
			r := open(t, s.connect(t, nil), dbrows.Config{})
			l := r.LeaseLog()
			ended := make(map[int]queue.Token)
			err := l.Recall(func(slot int, e machine.LeaseEntry) {
				if e.Token != 2 {
					ended[slot] = e.Token
				}
			})
			if err != nil {
				t.Error(err)
			}
			for slot, token := range ended {
				l.Free(slot, token)
			}
			if _, err := l.Put(entries(t, l, next)); err != nil {
				t.Error(err)
			}
			closes(t, r)
			if got := recorded(t, s); !slices.Contains(got, 2) || !slices.Contains(got, next) {
				t.Errorf("the next leader finds %v, without 2 or %d", got, next)
			}
		}
		if n := len(s.leases); n > 2 {
			t.Errorf("two leases at a time take %d rows", n)
		}
	})
}

// A slot that was freed belongs to its next owner: an earlier write that the server carries
// out late does not replace the entry.
func TestLeaseLog_SlotIsReservedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := s.connect(t, inTurn(map[op][]fault{opPut: {{}, {late: 5 * time.Second}}}))
		r := open(t, c, dbrows.Config{})
		l := r.LeaseLog()
		kept := entries(t, l, 1)
		if _, err := l.Put(kept); err != nil {
			t.Fatal(err)
		}
		failed := entries(t, l, 2)
		if n, err := l.Put(failed); n != 0 || err == nil {
			t.Errorf("a write that is not answered in 3 s: %d, %v", n, err)
		}
		l.Free(failed[0].Slot, 2)
		again := entries(t, l, 3)
		if again[0].Slot != failed[0].Slot {
			t.Fatalf("slot %d is free, and %d is reserved", failed[0].Slot, again[0].Slot)
		}
		l.Free(again[0].Slot, 2) // not its owner
		if n, err := l.Put(slices.Concat(again, failed)); n != 2 || err != nil {
			t.Errorf("Put with an entry whose slot was freed: %d, %v", n, err)
		}
		c.late.Wait()
		closes(t, r)
		if got := recorded(t, s); !slices.Equal(got, []queue.Token{1, 3}) {
			t.Errorf("the next leader finds %v", got)
		}
	})
}

// The puts of a leader have larger numbers than those of the one before.
func TestLeaseLog_NextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for leader := queue.Token(1); leader < 4; leader++ {
			r := open(t, s.connect(t, nil), dbrows.Config{})
			l := r.LeaseLog()
			old := make(map[int]queue.Token)
			if err := l.Recall(func(slot int, e machine.LeaseEntry) { old[slot] = e.Token }); err != nil {
				t.Error(err)
			}
			for slot, token := range old {
				l.Free(slot, token)
			}
			for token := 10 * leader; token < 10*leader+leader; token++ {
				e := entries(t, l, token)
				if _, err := l.Put(e); err != nil {
					t.Error(err)
				}
				if e[0].Slot > int(leader) {
					t.Errorf("slot %d is reserved for the %dth of %d leases", e[0].Slot, token-10*leader+1, leader)
				}
			}
			closes(t, r)
		}
		if got := recorded(t, s); !slices.Equal(got, []queue.Token{30, 31, 32}) {
			t.Errorf("the next leader finds %v", got)
		}
		s.leases[2] = logged{entries: []byte("garbage")}
		delete(s.leases, 1)
		if got := recorded(t, s); !slices.Equal(got, []queue.Token{32}) {
			t.Errorf("after damage the next leader finds %v", got)
		}
		r := open(t, s.connect(t, nil), dbrows.Config{})
		l := r.LeaseLog()
		_ = l.Recall(func(int, machine.LeaseEntry) {})
		for token := range queue.Token(2) { // rows 1 and 2 are free
			if n, err := l.Put(entries(t, l, 40+token)); n != 1 || err != nil {
				t.Errorf("Put: %d, %v", n, err)
			}
		}
		if n := len(s.leases); n != 3 {
			t.Errorf("the log has %d rows, want 3", n)
		}
		closes(t, r)
	})
}

// No lease is recorded by a process that no longer leads.
func TestC11_LeaseOfADeposedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := open(t, s.connect(t, nil), dbrows.Config{})
		s.endLease()
		second := open(t, s.connect(t, nil), dbrows.Config{})
		l := first.LeaseLog()
		if n, err := l.Put(entries(t, l, 1)); n != 0 || !errors.Is(err, queue.ErrLed) || !isClosed(first.Lost()) {
			t.Errorf("Put: %d, %v", n, err)
		}
		closes(t, first, second)
		if got := recorded(t, s); len(got) != 0 {
			t.Errorf("the next leader finds %v", got)
		}
	})
}

// Many callers put and free leases while writes fail: the next leader finds the leases that
// are alive.
func TestLeaseLog_Random(t *testing.T) {
	random := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var mu sync.Mutex
		c := s.connect(t, func(o op) (f fault) {
			mu.Lock()
			defer mu.Unlock()
			if o != opPut {
				return f
			}
			f.late = time.Duration(1 + random.IntN(5e6))
			switch random.IntN(20) {
			case 0:
				f.before = errBroken
			case 1:
				f.after = errBroken
			case 2:
				f.late = 4 * time.Second
			}
			return f
		})
		r := open(t, c, dbrows.Config{})
		l := r.LeaseLog()
		alive, unknown, last := map[queue.Token]int{}, map[queue.Token]bool{}, queue.Token(0)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 50 {
					mu.Lock()
					n := 1 + random.IntN(3)
					var tokens []queue.Token
					for range n {
						last++
						tokens = append(tokens, last)
					}
					mu.Unlock()
					all := entries(t, l, tokens...)
					done, err := l.Put(all)
					mu.Lock()
					for i, e := range all {
						switch {
						case i >= done:
							l.Free(e.Slot, e.Token)
							unknown[e.Token] = true
						default:
							alive[e.Token] = e.Slot
						}
					}
					if err == nil && done != len(all) {
						t.Errorf("Put: %d of %d", done, len(all))
					}
					for token, slot := range alive {
						if random.IntN(3) == 0 {
							l.Free(slot, token)
							delete(alive, token)
							unknown[token] = true
						}
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		c.late.Wait()
		closes(t, r)
		got := recorded(t, s)
		for token := range alive {
			if !slices.Contains(got, token) {
				t.Errorf("the lease %d is not recorded", token)
			}
		}
		for _, token := range got {
			if alive[token] == 0 && !unknown[token] {
				t.Errorf("the lease %d was never put", token)
			}
		}
		t.Logf("%d calls, %d writes, %d alive", 16*50, c.count(opPut), len(alive))
	})
}
