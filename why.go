package stint

import (
	"fmt"
	"strings"
	"time"
)

// Code names what keeps an entry waiting. The codes are the same in Go, in JSON and in
// the output of the command line.
type Code string

// The reasons for which an in-process entry waits.
const (
	// CodeMax: fewer slots are free than the entry needs.
	CodeMax Code = "max"
	// CodeCap: the running total has reached the cap of the entry's tier.
	CodeCap Code = "cap"
	// CodeKey: the maximum number of entries of the entry's key run already.
	CodeKey Code = "key"
	// CodeRate: the token bucket has too few tokens.
	CodeRate Code = "rate"
	// CodeBehind: other entries, or functions that resume their slots, go first.
	CodeBehind Code = "behind"
	// CodeShared: no shared slot is free, or no shared tokens are available.
	CodeShared Code = "shared"
	// CodePaused: the scheduler is paused.
	CodePaused Code = "paused"
	// CodeClosed: the scheduler is closed and accepts no work.
	CodeClosed Code = "closed"
	// CodeQueueFull: the queue is bounded and full; the caller waits for room.
	CodeQueueFull Code = "queue_full"
)

// Reason is one reason why an entry waits, with the data that is needed to act on
// it. Which fields are set depends on Code.
type Reason struct {
	Code Code `json:"code"`
	// Limit is the number that the entry ran into: max, cap, key, queue_full, shared.
	Limit int `json:"limit,omitempty"`
	// Running is how much of Limit is in use.
	Running int `json:"running,omitempty"`
	// Weight is how many slots the entry needs at once, where it needs more than one (max,
	// shared): it waits for max as long as Running plus Weight is above Limit, and is refused
	// where slots are shared.
	Weight int `json:"weight,omitempty"`
	// Key is the key at its limit (key), or the key of the bucket that has too few tokens or
	// that other callers wait for (rate, behind).
	Key string `json:"key,omitempty"`
	// Held is the work that has the slots that the entry waits for (max, cap, key), at most the
	// ten that have had them longest. It is set only with [Config.Holders].
	Held []Held `json:"held,omitempty"`
	// Ahead is the maximum number of entries that go first, by tier, lowest first.
	// An entry of a lower tier goes first only by the starvation guard, and is
	// not counted.
	Ahead [Tiers]int `json:"ahead,omitzero"`
	// Resuming is the number of functions that go first: they have suspended their slots, and
	// lack only free slots to resume; see [Scheduler].
	Resuming int `json:"resuming,omitempty"`
	// Guard is the number of turns until the starvation guard's turn for the
	// entry's tier.
	Guard int `json:"guard,omitempty"`
	// Tokens is the number of tokens that are missing.
	Tokens int64 `json:"tokens,omitempty"`
	// FreeAt is when the bucket will have these, if no caller goes first.
	FreeAt time.Time `json:"free_at,omitzero"`
	// Since is when the scheduler was paused.
	Since time.Time `json:"since,omitzero"`
	// By is the text that was passed to Pause; the processes that hold the shared slots, or
	// that wait for shared tokens; or why these slots or tokens cannot be had now.
	By string `json:"by,omitempty"`
}

// String returns one line of text that says why an entry waits, as in "as many slots are in
// use as the limit allows: 4 of 4". The wording may change; programs should use Code.
func (r Reason) String() string {
	switch r.Code {
	case CodeMax:
		if r.Weight > 1 {
			return fmt.Sprintf("it needs %d slots at once, and %d of %d are in use", r.Weight, r.Running, r.Limit) + r.held()
		}
		return fmt.Sprintf("as many slots are in use as the limit allows: %d of %d", r.Running, r.Limit) + r.held()
	case CodeCap:
		return fmt.Sprintf("its tier starts only while fewer than %d slots are in use, and %d are", r.Limit, r.Running) +
			r.held()
	case CodeKey:
		return fmt.Sprintf("key %q is at its limit: %d of %d entries run", r.Key, r.Running, r.Limit) + r.held()
	case CodeRate:
		if r.Key != "" {
			return r.short(fmt.Sprintf("the bucket of key %q", r.Key))
		}
		return r.short("the bucket")
	case CodeBehind:
		return r.behind()
	case CodeShared:
		return r.shared()
	case CodePaused:
		return "the scheduler is paused" + r.by() + r.at(", since ", r.Since)
	case CodeClosed:
		return "the scheduler is closed"
	case CodeQueueFull:
		return fmt.Sprintf("the queue is full: %d of %d entries wait", r.Running, r.Limit)
	default:
		return string(r.Code) // of another package, which has a text for it
	}
}

// short says how many tokens a bucket lacks, and when it has them.
func (r Reason) short(bucket string) string {
	return fmt.Sprintf("%s is short of %d tokens", bucket, r.Tokens) + r.at(", which it has at ", r.FreeAt)
}

// behind names what goes first: functions that resume their slots, and the tiers, highest
// first. Without any, it is an entry that needs several slots.
func (r Reason) behind() string {
	text := ""
	switch {
	case r.Resuming == 1:
		text = "a function that resumes its slots goes first"
	case r.Resuming > 1:
		text = fmt.Sprintf("%d functions that resume their slots go first", r.Resuming)
	}
	var tiers []string
	for i := Tiers - 1; i >= 0; i-- {
		if n := r.Ahead[i]; n > 0 {
			tiers = append(tiers, fmt.Sprintf("%d of tier %s", n, priorityOf(i)))
		}
	}
	switch entries := strings.Join(tiers, ", "); {
	case text != "" && entries != "":
		return text + ", and then other entries: " + entries
	case text != "":
		return text
	case entries != "":
		return "other entries go first: " + entries
	default:
		return "an entry that needs several slots goes first"
	}
}

// shared says what keeps shared slots (they have a Limit) or tokens from the entry.
func (r Reason) shared() string {
	switch {
	case r.Weight > 1:
		return fmt.Sprintf("it needs %d slots at once and is refused, since shared slots are taken one at a time", r.Weight)
	case r.Limit > 0 && r.Running >= r.Limit:
		return fmt.Sprintf("as many shared slots are in use as there are: %d of %d", r.Running, r.Limit) + r.by()
	case r.Tokens > 0:
		return r.short("the shared bucket") + r.by()
	case r.Ahead != [Tiers]int{}:
		return r.behind() + r.by()
	default:
		return "no shared slots or tokens are available now" + r.by()
	}
}

// held names the work that has had its slots longest, if it is known.
func (r Reason) held() string {
	if len(r.Held) == 0 {
		return ""
	}
	h := r.Held[0]
	text := ", longest by tier " + h.Priority.String()
	if h.Key != "" {
		text += fmt.Sprintf(", key %q", h.Key)
	}
	return text + r.at(", since ", h.Since)
}

func (r Reason) by() string {
	if r.By == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", r.By)
}

func (r Reason) at(text string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return text + t.Format("2006-01-02T15:04:05.000Z07:00")
}
