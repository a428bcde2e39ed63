package run

import (
	"context"
	"time"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/gate"
	"github.com/stintgo/stint/internal/clock"
)

// pacer delays the starts of jobs that have a slot: by the gates, among them the delay
// between two starts and the limit on the load average, and by the rate. It is safe for
// concurrent use.
type pacer struct {
	gates   *gate.Gates    // nil if there are none
	limiter *stint.Limiter // nil without a rate
}

// newPacer returns the pacer of a run. Its check of the load counts the young processes of
// running, which the load average does not include yet.
func newPacer(cfg *Config, running *registry) pacer {
	var p pacer
	checks := cfg.Gates
	if cfg.Load > 0 {
		young := func() int { return running.young(clock.Now(), loadLag) }
		checks = append(checks, gate.Load(cfg.Load, gate.ReadLoad, young))
	}
	if cfg.Delay > 0 || len(checks) > 0 {
		p.gates = gate.New(cfg.Delay, checks...)
	}
	if cfg.Rate > 0 {
		limiter := stint.NewLimiter(cfg.Rate, stint.LimiterConfig{Capacity: burst(cfg.Rate)})
		p.limiter = &limiter
	}
	return p
}

// loadLag is the time after which the load average includes most of the load of a process.
const loadLag = 5 * time.Second

// burst returns how many jobs may start at once under a rate: about 10 ms worth, so that
// starts are spread out. A burst of 1 s worth, usual for limiters, would allow twice the
// rate in the first second.
func burst(rate float64) int64 { return max(int64(rate/100), 1) }

// wait blocks until a job may start. The rate comes last, since its token is spent at once.
// After a wait without an error, the next job waits at the gates until started is called.
// If ctx ends, wait returns the cause.
func (p *pacer) wait(ctx context.Context, tier stint.Priority) error {
	if err := p.gates.Wait(ctx, tier); err != nil {
		return err
	}
	err := context.Cause(ctx)
	if err == nil && p.limiter != nil {
		err = p.limiter.At(tier).Wait(ctx, 1)
	}
	if err != nil {
		p.started()
	}
	return err
}

// started lets the next job pass the gates. The job before it has been started, or has failed to start, so that the
// checks, such as that of the load, take it into account.
func (p *pacer) started() { p.gates.Started() }
