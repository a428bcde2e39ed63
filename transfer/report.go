package transfer

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

// meter computes a rate in bytes per second from a count of bytes: an average in which the
// weight of the past halves every two seconds. It is for one goroutine.
type meter struct {
	at    time.Time
	count int64
	rate  float64
	past  bool // the rate is of more than the first bytes
}

// halfLife is that of the weight of the past in the rate of a meter.
const halfLife = 2 * time.Second

// add updates the rate at a time. The first bytes are mostly the burst of a limiter and what
// the buffers of a connection take at once, so they count as if they had taken halfLife, and only
// until more have been sent.
func (m *meter) add(now time.Time, count int64) {
	passed, sent := now.Sub(m.at), count-m.count
	if passed <= 0 {
		return
	}
	if m.count == 0 {
		passed = max(passed, halfLife)
	}
	weight := math.Exp2(-float64(passed) / float64(halfLife))
	if !m.past && sent > 0 {
		weight, m.past = 0, m.count > 0
	}
	m.rate = weight*m.rate + (1-weight)*float64(sent)/passed.Seconds()
	m.at, m.count = now, count
}

// reportEvery is the interval at which an attempt reports its progress and saves its
// checkpoint. Heartbeats are less frequent.
const reportEvery = 500 * time.Millisecond

// report reports the progress of the attempt until stop is called. The note of the progress
// is the rate, as [stint.ParseRate] reads it.
func (a *attempt) report() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		m, last := meter{at: clock.Now()}, []byte(nil)
		for {
			select {
			case <-tick.C:
			case <-end:
				return
			}
			m.add(clock.Now(), a.sent.Load())
			p := a.plan.Load()
			if p == nil {
				continue
			}
			if a.source != nil { // first, so that no heartbeat sends progress without the states of its chunks
				if encoded := p.encode(); !bytes.Equal(encoded, last) {
					a.job.Save(encoded)
					last = encoded
				}
			}
			a.job.Report(queue.Progress{Done: p.done(), Total: p.layout.size, Note: rateText(m.rate)})
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// rateText formats a rate of bytes per second.
func rateText(rate float64) string {
	unit := ""
	for _, larger := range []string{"Ki", "Mi", "Gi"} {
		const multiple = 1024
		if rate < multiple {
			break
		}
		rate, unit = rate/multiple, larger
	}
	return fmt.Sprintf("%.4g %sB/s", rate, unit)
}

// rateOf parses a rate of rateText; 0 if there is none.
func rateOf(note string) float64 {
	rate, err := stint.ParseRate(note)
	if err != nil {
		return 0
	}
	return rate
}
