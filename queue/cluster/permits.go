package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

// errLost is the cause with which permits are lost.
var errLost = fmt.Errorf("%w: no leader has confirmed the permits of this host in time", queue.ErrUnavailable)

// permits are the accounts of a node, and its session with the leader. Calls into schedulers
// are made by one goroutine, in the order in which their causes occur: a scheduler calls its
// Slots with its lock held.
type permits struct {
	state   *nodeState
	name    string // of the node
	id      string // of this process
	lease   time.Duration
	begin   sync.Once
	running sync.WaitGroup // the goroutines of start

	news  chan struct{} // receives when a claim is urgent
	calls chan struct{} // receives when todo is not empty
	left  chan struct{} // receives when the leader has answered after leave

	mu           sync.Mutex // guards the fields below, all Slots and all Buckets
	slots        []*Slots   // the id of an account is its index + 1
	buckets      []*Bucket  // the id of a token account is its index + 1
	todo         []func()
	ended        error     // why all permits have ended, or nil
	over         bool      // end has been called, which leaves the last calls in todo
	until        time.Time // the end of the lease
	session      uint64    // the number of the last session
	stop         context.CancelFunc
	acknowledged time.Time // when the last acknowledged report was sent, or the session began
	seq          uint64    // of the last report
	sent         []stamp   // of reports that are not acknowledged
	acked        uint64    // the last report that is
}

// stamp is when a report was made.
type stamp struct {
	seq uint64
	at  time.Time
}

func newPermits(state *nodeState, name string, lease time.Duration) *permits {
	return &permits{
		state: state, name: name, id: rand.Text(), lease: lease,
		news: make(chan struct{}, 1), calls: make(chan struct{}, 1), left: make(chan struct{}, 1),
	}
}

// start starts the goroutines of the permits, at the first call.
func (p *permits) start() {
	p.begin.Do(func() {
		p.running.Go(p.connect)
		p.running.Go(p.watch)
		p.running.Go(p.call)
	})
}

// validLocked reports whether the lease has not ended.
func (p *permits) validLocked(now time.Time) bool {
	// As in dbrows.Rows.Leads: one clock stops with the system, the other may be set back.
	return now.Before(p.until) && now.Round(0).Before(p.until.Round(0))
}

// connect keeps a session with the leader.
func (p *permits) connect() {
	for pause := againFirst; p.state.life.Err() == nil; pause = min(2*pause, againLast) {
		v := p.state.view()
		if v.at != nil && p.converse() {
			pause = againFirst
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-v.life.Done(): // there is another leader
		}
		timer.Stop()
	}
}

// converse has a session with the leader, and reports whether the leader has answered.
func (p *permits) converse() (answered bool) {
	ctx, stop := context.WithCancel(p.state.life)
	read, write := io.Pipe()
	var writes sync.WaitGroup
	defer func() {
		stop()
		_ = read.Close() // never fails
		writes.Wait()
	}()
	number := p.open(stop)
	writes.Go(func() {
		defer stop()
		_ = write.CloseWithError(p.write(ctx, write, number))
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://leader"+permitsPath, read)
	if err != nil {
		return false
	}
	res, err := toLeader{p.state}.RoundTrip(r)
	if err != nil {
		return false
	}
	defer res.Body.Close() //nolint:errcheck // the session is over
	if res.StatusCode != http.StatusOK {
		return false
	}
	for in := json.NewDecoder(res.Body); ; {
		var a answer
		if err := in.Decode(&a); err != nil {
			return answered
		}
		answered = true
		p.receive(number, a)
	}
}

// open begins a session, which stop ends. From now on, answers to former ones are ignored.
func (p *permits) open(stop context.CancelFunc) (number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session++
	p.sent, p.stop, p.acknowledged = nil, stop, clock.Now()
	for _, b := range p.buckets {
		b.account.Lose() // another leader does not know of these tokens
	}
	return p.session
}

// write sends reports until ctx ends.
func (p *permits) write(ctx context.Context, w io.Writer, number uint64) error {
	out := json.NewEncoder(w)
	if err := out.Encode(hello{Node: p.id, Name: p.name, Session: number}); err != nil {
		return err
	}
	renew := time.NewTicker(p.period())
	defer renew.Stop()
	for all := true; ; {
		if err := out.Encode(p.report(all)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.news:
			all = false
		case <-renew.C:
			all = true
		}
	}
}

// period is how often the lease is renewed.
func (p *permits) period() time.Duration { return p.lease / 8 }

// report returns the claims that are urgent, or all.
func (p *permits) report(all bool) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	p.sent = append(p.sent, stamp{p.seq, clock.Now()})
	r := report{Seq: p.seq}
	for _, s := range p.slots {
		if all && s.account.Waiting() > 0 {
			s.account.Ask()
		}
		if all || s.account.Urgent() {
			r.Claims = append(r.Claims, s.account.Claim())
		}
	}
	for _, b := range p.buckets {
		if all && b.account.Waiting() > 0 {
			b.account.Ask()
		}
		if all || b.account.Urgent() {
			r.Rates = append(r.Rates, b.account.Claim())
		}
	}
	return r
}

// receive does what the leader has answered in a session.
func (p *permits) receive(number uint64, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number != p.session {
		return
	}
	// What has expired is lost before the lease is renewed.
	now := clock.Now()
	p.expireLocked(now)
	for len(p.sent) > 0 && p.sent[0].seq <= a.Ack {
		if at := p.sent[0].at; p.sent[0].seq == a.Ack {
			p.acknowledged, p.until, p.acked = at, at.Add(p.lease-p.lease/10), a.Ack
		}
		p.sent = p.sent[1:]
	}
	if p.ended != nil {
		wake(p.left)
		return
	}
	for _, o := range a.Orders {
		if s := find(p.slots, o.ID); s != nil {
			s.applyLocked(o)
		}
	}
	for _, u := range a.Usage {
		if s := find(p.slots, u.ID); s != nil {
			s.usage = u
		}
	}
	for _, o := range a.Rates {
		if b := find(p.buckets, o.ID); b != nil {
			b.applyLocked(o, now)
		}
	}
	for _, u := range a.RateUsage {
		if b := find(p.buckets, u.ID); b != nil {
			b.usage = u
		}
	}
	p.newsLocked()
}

// find returns the element with a number from 1, or nil.
func find[T any](all []*T, id uint64) *T {
	if id == 0 || id > uint64(len(all)) {
		return nil
	}
	return all[id-1]
}

// errLocked returns why no permits can be had now, "" if they can.
func (p *permits) errLocked() string {
	switch {
	case p.ended != nil:
		return p.ended.Error()
	case !p.validLocked(clock.Now()):
		return errNoLeader.Error()
	}
	return ""
}

// expireLocked ends all permits if their lease has ended.
func (p *permits) expireLocked(now time.Time) {
	if p.validLocked(now) {
		return
	}
	for _, s := range p.slots {
		if s.account.Held() > 0 {
			s.loseLocked(errLost)
		}
	}
	for _, b := range p.buckets {
		b.expireLocked()
	}
}

// newsLocked triggers a report to the leader, if a claim is urgent.
func (p *permits) newsLocked() {
	for _, s := range p.slots {
		s.newsLocked()
	}
	for _, b := range p.buckets {
		b.newsLocked()
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch ends permits when their lease ends, returns those that are not used, and ends
// sessions in which the leader does not answer.
func (p *permits) watch() {
	tick := time.NewTicker(p.period())
	defer tick.Stop()
	for {
		end := time.NewTimer(p.check())
		select {
		case <-end.C:
		case <-tick.C:
			p.tick()
		case <-p.state.life.Done():
			end.Stop()
			p.end(queue.ErrClosed)
			return
		}
		end.Stop()
	}
}

// check ends what has expired, and returns when to look again.
func (p *permits) check() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.Now()
	p.expireLocked(now)
	if left := p.until.Sub(now); left > 0 {
		return left
	}
	return p.lease
}

func (p *permits) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		s.account.Tick()
	}
	for _, b := range p.buckets {
		b.account.Tick()
	}
	if p.stop != nil && clock.Now().Sub(p.acknowledged) > p.lease/2 {
		p.stop()
	}
	p.newsLocked()
}

// end ends all permits for good.
func (p *permits) end(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.over = cause, true
	for _, s := range p.slots {
		s.loseLocked(cause)
		s.notifyLocked()
	}
	for _, b := range p.buckets {
		b.notifyLocked()
	}
	wake(p.calls)
}

// leave returns all permits that are not in use, and waits until the leader knows it, or ctx
// ends. Those in use come back when their lease ends: their work is about to stop.
func (p *permits) leave(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = queue.ErrClosed
	before, returned := p.seq, false
	for _, s := range p.slots {
		returned = s.account.Leave() || returned
	}
	for _, b := range p.buckets {
		returned = b.account.Leave() || returned
	}
	p.newsLocked()
	for returned && p.acked <= before && ctx.Err() == nil && p.validLocked(clock.Now()) {
		p.mu.Unlock()
		select {
		case <-p.left:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
}

// laterLocked makes a call without the lock.
func (p *permits) laterLocked(call func()) {
	p.todo = append(p.todo, call)
	wake(p.calls)
}

// call makes the calls into schedulers.
func (p *permits) call() {
	for {
		p.mu.Lock()
		todo, over := p.todo, p.over
		p.todo = nil
		p.mu.Unlock()
		for _, f := range todo {
			f()
		}
		switch {
		case len(todo) > 0:
		case over:
			return
		default:
			<-p.calls
		}
	}
}
