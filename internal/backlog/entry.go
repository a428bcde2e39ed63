package backlog

// Entry is one waiting thing. It is embedded in or allocated with what waits,
// so that queueing allocates nothing. The zero Entry is ready to be pushed; it
// must not be copied while it is queued.
type Entry[T any] struct {
	// Value is the caller's; the backlog does not read it.
	Value T

	next, prev *Entry[T] // in its queue
	queue      *queue[T] // nil while it is not queued
	tag        uint64    // virtual start time within its tier
	ticket     uint64    // order of arrival; breaks ties between tags
	weight     int32
	place      int32 // among the aged of its queue, from 1; 0 in its FIFO
}

// Queued reports whether the entry is in a backlog.
func (e *Entry[T]) Queued() bool { return e.queue != nil }

// Weight is the number of slots that the entry was pushed with.
func (e *Entry[T]) Weight() int { return int(e.weight) }

// Ticket numbers the entries of a backlog in the order of their arrival. An
// entry keeps it when it leaves, to come back with it; see [Backlog.PushAt].
func (e *Entry[T]) Ticket() uint64 { return e.ticket }

// SetTicket sets what Ticket returns for an entry that is not queued; [Backlog.PushAt] sets it again.
func (e *Entry[T]) SetTicket(ticket uint64) { e.ticket = ticket }

// Tier is the tier of a queued entry.
func (e *Entry[T]) Tier() int { return int(e.queue.tier) }

// Class is the class of a queued entry.
func (e *Entry[T]) Class() int { return e.queue.class.number }

// Key is the key of a queued entry, empty for none.
func (e *Entry[T]) Key() string {
	if k := e.queue.flow.key; k != nil {
		return k.name
	}
	return ""
}

// Aside reports whether a queued entry may not start because its key is at its
// limit or blocked.
func (e *Entry[T]) Aside() bool {
	k := e.queue.flow.key
	return k != nil && k.aside
}
