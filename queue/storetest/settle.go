package storetest

import (
	"time"

	"github.com/stintgo/stint/queue"
)

func settleCases() []testCase {
	small := Config{MaxResult: 100, MaxCheckpoint: 50}
	return []testCase{
		{"C4_Success", Config{}, success},
		{"C2_FailureIsRetried", Config{}, failureIsRetried},
		{"C2_RetryThatIsDue", Config{}, retryAtOnce},
		{"C2_MaxAttempts", Config{}, maxAttempts},
		{"C2_ThreeAttemptsUnlessSet", Config{}, threeAttempts},
		{"C2_PermanentFailure", Config{}, permanentFailure},
		{"C5_SnoozeIsNoFailure", Config{}, snoozeIsNoFailure},
		{"C5_ReleaseIsNoFailure", Config{}, releaseIsNoFailure},
		{"C6_StaleTokensAreRefused", Config{}, staleTokens},
		{"C6_RepeatedSettle", Config{}, repeatedSettle},
		{"C6_SettleAnswersEachOutcome", Config{}, eachOutcome},
		{"C6_ResultLimit", small, resultLimit},
		{"C4_MaxSteps", Config{}, maxSteps},
	}
}

func success(c *trial) {
	id := c.add(queue.Options{})
	c.pass(time.Second)
	running := c.claimOne()
	c.pass(time.Second)
	result := []byte("result")
	c.ok("settle", c.settle(running, queue.Outcome{Kind: queue.OutcomeSuccess, Result: result}))
	result[0] = 'X'
	t := c.task(id)
	if t.State != queue.Succeeded || string(t.Result) != "result" || !t.Changed.Equal(c.now) {
		c.Errorf("the task is %+v", t)
	}
	last := t.Steps[len(t.Steps)-1]
	if last.On != queue.OnSuccess || last.By != worker || last.Token != running.Lease.Token {
		c.Errorf("its last step is %+v", last)
	}
	c.pass(time.Hour)
	c.maintain()
	c.started(1)
}

func failureIsRetried(c *trial) {
	id := c.add(queue.Options{})
	at := c.now.Add(time.Minute)
	c.fails(c.claimOne(), queue.Outcome{Error: "no luck", RunAt: at})
	t := c.task(id)
	if t.State != queue.Scheduled || t.Failures != 1 || t.Error != "no luck" || !t.RunAt.Equal(at) {
		c.Errorf("the task is %+v", t)
	}
	if last := t.Steps[len(t.Steps)-1]; last.On != queue.OnFailure || last.Detail != "no luck" {
		c.Errorf("its last step is %+v", last)
	}
	c.started(1) // no task can be claimed before
	c.pass(time.Minute - 1)
	if next := c.maintain(); !next.Equal(at) {
		c.Errorf("Maintain returns %v, want %v", next, at)
	}
	c.is(queue.Scheduled, id)
	c.pass(1)
	c.maintain()
	c.is(queue.Waiting, id)
	c.started(1, id)
}

func retryAtOnce(c *trial) {
	id := c.add(queue.Options{})
	c.fails(c.claimOne(), queue.Outcome{})
	c.is(queue.Waiting, id)
	c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(-time.Hour)})
	c.started(1, id)
}

func maxAttempts(c *trial) {
	id := c.add(queue.Options{MaxAttempts: 5})
	for i := range 4 {
		c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(time.Second)})
		if t := c.task(id); t.State != queue.Scheduled || t.Failures != i+1 {
			c.Fatalf("after %d of 5 failures it is %s with %d failures", i+1, t.State, t.Failures)
		}
		c.pass(time.Second)
		c.maintain()
	}
	c.fails(c.claimOne(), queue.Outcome{Error: "the last", RunAt: c.now.Add(time.Second)})
	c.pass(time.Hour)
	c.maintain()
	t := c.task(id)
	if t.State != queue.Dead || t.Failures != 5 || t.Error != "the last" {
		c.Errorf("the task is %+v", t)
	}
	errors := 0
	for _, s := range t.Steps {
		if s.On == queue.OnFailure && s.Detail != "" && !s.At.IsZero() {
			errors++
		}
	}
	if errors != 5 {
		c.Errorf("its steps have %d errors, want 5\n%s", errors, life(t))
	}
}

func threeAttempts(c *trial) {
	id := c.add(queue.Options{})
	for range 2 {
		c.fails(c.claimOne(), queue.Outcome{})
	}
	c.is(queue.Waiting, id)
	c.fails(c.claimOne(), queue.Outcome{})
	c.is(queue.Dead, id)
	one := c.add(queue.Options{MaxAttempts: 1})
	c.fails(c.claimOne(), queue.Outcome{})
	c.is(queue.Dead, one)
}

func permanentFailure(c *trial) {
	id := c.add(queue.Options{MaxAttempts: 100})
	c.fails(c.claimOne(), queue.Outcome{Permanent: true, RunAt: c.now.Add(time.Second)})
	c.is(queue.Dead, id)
}

func snoozeIsNoFailure(c *trial) {
	id := c.add(queue.Options{MaxAttempts: 1})
	for range 5 {
		at := c.now.Add(time.Minute)
		c.ok("snooze", c.settle(c.claimOne(), queue.Outcome{Kind: queue.OutcomeSnooze, RunAt: at, Checkpoint: []byte("c")}))
		if t := c.task(id); t.State != queue.Scheduled || t.Failures != 0 || !t.RunAt.Equal(at) {
			c.Fatalf("the task is %+v", t)
		}
		c.started(1)
		c.pass(time.Minute)
		c.maintain()
	}
	c.succeeds(c.claimOne())
}

func releaseIsNoFailure(c *trial) {
	id := c.add(queue.Options{MaxAttempts: 1, MaxCrashes: 1})
	for range 5 {
		t := c.claimOne()
		if t.ID != id || t.Failures != 0 || t.Crashes != 0 {
			c.Fatalf("the task is %+v", t)
		}
		back := queue.Outcome{Kind: queue.OutcomeRelease, RunAt: c.now.Add(time.Hour), Error: "too many open files"}
		c.ok("release", c.settle(t, back))
		c.is(queue.Waiting, id)
		t = c.task(id)
		if last := t.Steps[len(t.Steps)-1]; last.Detail != back.Error || t.Error != "" {
			c.Errorf("after a release the step is %+v and the error %q; want the reason in the step only", last, t.Error)
		}
	}
	c.succeeds(c.claimOne())
}

// staleTokens shows that Settle and Heartbeat accept only the token of the current lease.
func staleTokens(c *trial) {
	id := c.add(queue.Options{})
	first := c.claimOne()
	c.expireLeases()
	second := c.claimOne()
	if second.Lease.Token <= first.Lease.Token {
		c.Errorf("token %d comes after %d", second.Lease.Token, first.Lease.Token)
	}
	forged := second
	forged.Lease.Token += 1000
	unknown := queue.Task{ID: c.ids.New(c.now), Lease: second.Lease}
	for what, t := range map[string]queue.Task{"lost": first, "forged": forged, "none": {ID: id}, "unknown": unknown} {
		for _, on := range []queue.OutcomeKind{
			queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeSnooze, queue.OutcomeRelease,
		} {
			c.refused(what, c.settle(t, queue.Outcome{Kind: on, Result: []byte("late"), Error: "late"}), queue.ErrStale)
		}
		t.Lease.Worker = worker
		if got := c.heartbeat(t, queue.Heartbeat{Lease: time.Hour, Checkpoint: []byte("late")}); got.Stop != queue.StopLost {
			c.Errorf("%s: a heartbeat returns %s", what, got.Stop)
		}
	}
	t := c.task(id)
	if t.State != queue.Running || t.Failures != 0 || t.Checkpoint != nil || !t.Lease.Until.Equal(second.Lease.Until) {
		c.Errorf("the task is %+v", t)
	}
	c.succeeds(second)
	c.refused("lost, after a success", c.settle(first, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	c.command(queue.OrderForget, id)
	c.refused("forgotten", c.settle(second, queue.Outcome{Kind: queue.OutcomeFailure}), queue.ErrStale)
}

func repeatedSettle(c *trial) {
	id := c.add(queue.Options{})
	first := c.claimOne()
	failure := queue.Outcome{Kind: queue.OutcomeFailure, Error: "e"}
	for range 3 {
		c.ok("repeat a failure", c.settle(first, failure))
	}
	if t := c.task(id); t.Failures != 1 {
		c.Errorf("after one failure it has %d failures", t.Failures)
	}
	c.refused("another outcome", c.settle(first, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	second := c.claimOne()
	c.ok("repeat it while it runs again", c.settle(first, failure))
	c.is(queue.Running, id)
	c.releases(second)
	c.releases(second)
	third := c.claimOne()
	c.releases(second)
	c.ok("settle", c.settle(third, queue.Outcome{Kind: queue.OutcomeSuccess, Result: []byte("one")}))
	c.ok("repeat a success", c.settle(third, queue.Outcome{Kind: queue.OutcomeSuccess, Result: []byte("two")}))
	if t := c.task(id); t.State != queue.Succeeded || string(t.Result) != "one" || t.Failures != 1 {
		c.Errorf("the task is %+v", t)
	}
}

func eachOutcome(c *trial) {
	c.several(4, queue.Options{})
	tasks := c.claim(4)
	outcomes := []queue.Outcome{
		{ID: tasks[0].ID, Token: tasks[0].Lease.Token, Kind: queue.OutcomeSuccess},
		{ID: tasks[1].ID, Token: tasks[1].Lease.Token + 100, Kind: queue.OutcomeSuccess},
		{ID: tasks[2].ID, Token: tasks[2].Lease.Token, Kind: queue.OutcomeKind(queue.OnClaim)},
		{ID: tasks[3].ID, Token: tasks[3].Lease.Token, Kind: queue.OutcomeFailure, Permanent: true},
		{ID: tasks[0].ID, Token: tasks[0].Lease.Token, Kind: queue.OutcomeSuccess},
		{ID: tasks[3].ID, Token: tasks[3].Lease.Token, Kind: queue.OutcomeSuccess},
	}
	want := []error{nil, queue.ErrStale, queue.ErrInvalid, nil, nil, queue.ErrStale}
	answers, err := c.Store.Settle(c.Context(), c.now, outcomes)
	c.ok("Settle", err)
	if len(answers) != len(want) {
		c.Fatalf("%d outcomes have %d answers", len(want), len(answers))
	}
	for i := range want {
		c.refused("an outcome of several", answers[i], want[i])
	}
	for i, state := range []queue.State{queue.Succeeded, queue.Running, queue.Running, queue.Dead} {
		c.is(state, tasks[i].ID)
	}
	answers, err = c.Store.Settle(c.Context(), c.now, nil)
	if c.ok("settle nothing", err); len(answers) != 0 {
		c.Errorf("no outcomes have the answers %v", answers)
	}
}

// resultLimit shows that a worker whose result is too large keeps its lease and can settle
// the task with another outcome.
func resultLimit(c *trial) {
	id := c.add(queue.Options{})
	t := c.claimOne()
	c.refused("a large result",
		c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess, Result: make([]byte, 101)}), queue.ErrTooLarge)
	c.refused("a large checkpoint",
		c.settle(t, queue.Outcome{Kind: queue.OutcomeSnooze, Checkpoint: make([]byte, 51)}), queue.ErrTooLarge)
	c.is(queue.Running, id)
	heartbeats := []queue.Heartbeat{{ID: t.ID, Token: t.Lease.Token, Lease: time.Hour, Checkpoint: make([]byte, 51)}}
	_, err := c.Store.Heartbeat(c.Context(), c.now, queue.Worker{Name: worker}, heartbeats)
	c.refused("a heartbeat with a large checkpoint", err, queue.ErrTooLarge)
	if got := c.task(id); !got.Lease.Until.Equal(t.Lease.Until) || got.Checkpoint != nil {
		c.Errorf("the refused heartbeat has left %+v", got)
	}
	c.heartbeat(t, queue.Heartbeat{Checkpoint: make([]byte, 50)})
	c.ok("settle", c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess, Result: make([]byte, 100)}))
}

// maxSteps shows that a task keeps its first step and the newest ones.
func maxSteps(c *trial) {
	id := c.add(queue.Options{MaxAttempts: 1000})
	var last queue.Task
	for range queue.MaxSteps {
		last = c.claimOne()
		c.releases(last)
		c.pass(time.Second)
	}
	t := c.task(id)
	if len(t.Steps) != queue.MaxSteps || t.Steps[0].On != queue.OnSubmit {
		c.Fatalf("it has %d steps, the first by %s; want %d", len(t.Steps), t.Steps[0].On, queue.MaxSteps)
	}
	for i := range t.Steps[1:] {
		want := last.Lease.Token - queue.Token((queue.MaxSteps-2-i)/2)
		if s := t.Steps[i+1]; s.Token > want || s.Token == 0 {
			c.Fatalf("step %d is not among the newest\n%s", i+1, life(t))
		}
	}
	if s := t.Steps[len(t.Steps)-1]; s.Token != last.Lease.Token {
		c.Errorf("the last step is %+v", s)
	}
}
