package isolate

import (
	"fmt"
	"os"
	"sync/atomic"
)

// argHandler is the argument that makes this program the process of a handler.
// An argument is seen in lists of processes, and what the handler starts does
// not inherit it.
const argHandler = "__isolated-handler"

// exitOwn is the exit status of processes that somebody else has started.
const exitOwn = 125

// known are the handlers that Main was called with; nil before.
var known atomic.Pointer[map[string]isolated] //nolint:gochecknoglobals // what this program can do is one for all

func handlersOfMain() map[string]isolated {
	if m := known.Load(); m != nil {
		return *m
	}
	return nil
}

// Main makes this process what it was started for. In most it returns at once,
// and the program goes on. In those that isolate has started it does their work and
// ends the process, so it is to be called before anything else is done, with all
// handlers that the program isolates. It is called once, and panics if two
// handlers have the same name.
func Main(handlers ...interface{ isolated }) {
	m := make(map[string]isolated, len(handlers))
	for _, h := range handlers {
		if m[h.key()] != nil {
			panic(fmt.Sprintf("isolate.Main: two handlers are called %q", h.key()))
		}
		m[h.key()] = h
	}
	if !known.CompareAndSwap(nil, &m) {
		panic("isolate.Main: it has been called before")
	}
	if served, err := serve(os.Args, m); served {
		if err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
			os.Exit(exitOwn)
		}
		os.Exit(0)
	}
}
