// Package csync measures the locks that take a context against those that programs
// use instead today.
package csync

import (
	"context"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours          = "stint"
	semaphoreOne  = "x/sync semaphore of 1"
	channelOne    = "channel of 1 + select"
	closedChannel = "closed channel"
)

// Cases are the rows of this suite.
func Cases() []measure.Case {
	return []measure.Case{mutex(), barrier(2), barrier(8), barrier(64)}
}

// cancellable is a context that could end, as those of servers can.
func cancellable(st *measure.Stage) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	st.Cleanup(cancel)
	return ctx
}
