package isolate

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/stintgo/stint/internal/proc"
)

// argHandler is the argument that makes a process of this program run a handler. An
// argument rather than a variable, because process lists show it and the handler's
// children do not inherit it.
const argHandler = "__isolated-handler"

// known is the handlers that Main was called with, by kind; nil before.
var known atomic.Pointer[map[string]AnyHandler] //nolint:gochecknoglobals // a program has one set of handlers

func handlersOfMain() map[string]AnyHandler {
	if m := known.Load(); m != nil {
		return *m
	}
	return nil
}

// Main runs the handler or the watcher if isolate started this process for one, and then
// exits. In every other process it returns at once. Call it first in the main function,
// with all handlers of the program. Main panics if it is called twice or if two handlers
// have the same kind.
func Main(handlers ...AnyHandler) {
	m := make(map[string]AnyHandler, len(handlers))
	for _, h := range handlers {
		if m[h.key()] != nil {
			panic(fmt.Sprintf("isolate.Main: two handlers have the kind %q", h.key()))
		}
		m[h.key()] = h
	}
	if !known.CompareAndSwap(nil, &m) {
		panic("isolate.Main: it has been called before")
	}
	if served, err := serve(os.Args, m); served {
		if err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
			os.Exit(proc.ExitOwn) // a process that was started by hand, for example
		}
		os.Exit(0)
	}
}
