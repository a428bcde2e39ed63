package pool

import (
	"encoding/binary"
	"strings"
)

// Usage is the state of a limit.
type Usage struct {
	Slots, Waiting int      // of living participants
	Holders        []Holder // in the order of the table; only those that hold slots or wait
}

// Holder is a participant that holds slots or waits.
type Holder struct {
	Party
	Slots, Waiting int
	Dead           bool // the participant has died and its slots are not recovered yet
}

// Party identifies a participant.
type Party struct {
	PID  int
	Name string
	Life int // the index of its life lock
}

// Usage returns the holders and waiters of a limit. It first recovers the slots of the
// dead. A granted slot counts once it is accepted. While other participants take and
// release slots, the numbers are not of the same instant.
func (h *Handle) Usage() Usage {
	m := h.member
	m.Reap()
	return m.pool.usage(h.limit, func(i int) bool { return isLive(m.pool.state(i).load()) })
}

// Usage is [Handle.Usage] for a process that has not joined. It changes nothing: slots of
// the dead are reported with Dead set.
func (p *Pool) Usage(limit int) Usage { return p.usage(&p.limits[limit], p.present) }

// Parties lists the living participants.
func (p *Pool) Parties() (all []Party) {
	for i := range p.shape.Participants {
		if p.present(i) {
			all = append(all, p.signed(i))
		}
	}
	return all
}

// present reports whether participant i lives. It is for a process that has not joined.
func (p *Pool) present(i int) bool { return isLive(p.state(i).load()) && p.host.Held(lifeLock(i)) }

func (p *Pool) usage(l *limit, alive func(i int) bool) (u Usage) {
	held, left := make([]int, p.shape.Participants), make([]int, p.shape.Participants)
	for s := range l.count {
		switch seen := l.slot(s).load(); {
		case isFree(seen) || seen&granted != 0:
		case p.lives(seen):
			held[indexOf(seen)]++
		default:
			left[indexOf(seen)]++
		}
	}
	for i := range held {
		h := Holder{Party: p.signed(i), Slots: held[i]}
		if alive(i) {
			h.Waiting = countOf(l.want(i).load()) // the want of a dead participant is stale
			u.Slots += h.Slots
			u.Waiting += h.Waiting
		} else {
			h.Slots, h.Dead = held[i]+left[i], true
		}
		if h.Slots+h.Waiting > 0 {
			u.Holders = append(u.Holders, h)
		}
		if !h.Dead && left[i] > 0 {
			// The previous participant of this entry; its name has been overwritten.
			u.Holders = append(u.Holders, Holder{Slots: left[i], Dead: true})
		}
	}
	return u
}

// PID returns the process ID that participant i has registered.
func (p *Pool) PID(i int) int { return int(p.entry(i, entryPID).load()) }

// Sign changes the PID and the name under which m is listed.
func (m *Member) Sign(pid int, name string) { m.pool.sign(m.index, pid, name) }

// sign stores the PID and the name of participant i. They are for display only.
func (p *Pool) sign(i, pid int, name string) {
	p.entry(i, entryPID).store(uint64(pid))
	var text [nameWords * 8]byte
	copy(text[:], name)
	for n := range nameWords {
		p.entry(i, entryName+n).store(binary.NativeEndian.Uint64(text[n*8:]))
	}
}

func (p *Pool) signed(i int) Party {
	var text [nameWords * 8]byte
	for n := range nameWords {
		binary.NativeEndian.PutUint64(text[n*8:], p.entry(i, entryName+n).load())
	}
	name := strings.ToValidUTF8(strings.TrimRight(string(text[:]), "\x00"), "") // it may be cut within a character
	return Party{p.PID(i), name, lifeLock(i)}
}

// BucketState is the state of a bucket.
type BucketState struct {
	Spent   int64
	Waiters []Waiter // in the order of the table
}

// Waiter is a participant that waits for tokens.
type Waiter struct {
	Party
	Tier    int // the highest tier that waits
	Waiting int
	Self    bool // it is the participant on whose handle State was called

	at int
}

// State returns the spent tokens and the waiters of a bucket. While participants
// come and go, the numbers are not of the same instant.
func (h *BucketHandle) State() BucketState {
	m := h.member
	m.Reap()
	state := m.pool.bucketState(h.bucket, func(i int) bool { return isLive(m.pool.state(i).load()) })
	for i := range state.Waiters {
		state.Waiters[i].Self = state.Waiters[i].at == m.index
	}
	return state
}

// BucketState is [BucketHandle.State] for a process that has not joined.
func (p *Pool) BucketState(bucket int) BucketState {
	return p.bucketState(&p.buckets[bucket], p.present)
}

func (p *Pool) bucketState(b *bucket, alive func(i int) bool) BucketState {
	state := BucketState{Spent: int64(b.spent.load())}
	for i := range p.shape.Participants {
		if want := b.want(i).load(); want != 0 && alive(i) {
			state.Waiters = append(state.Waiters, Waiter{
				Party:   p.signed(i),
				Tier:    tierOf(want),
				Waiting: countOf(want),
				at:      i,
			})
		}
	}
	return state
}
