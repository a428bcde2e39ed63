package server

import (
	"fmt"
	"net/http"

	"github.com/stintgo/stint/internal/wire"
)

// routes returns the handler of all calls.
func routes(x *executor, store calls, jobs jobs, streams *streams, logs *logs) http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, h http.Handler) {
		mux.Handle("POST "+path, h)
		if packed, ok := wire.PackedPath(path); ok {
			mux.Handle("POST "+packed, h)
		}
	}
	handle(wire.Submit, call(x, store.submit))
	handle(wire.Claim, once(x, store.claim, store.replayClaim))
	handle(wire.Settle, call(x, store.settle))
	handle(wire.Heartbeat, call(x, store.heartbeat))
	handle(wire.Command, once(x, store.command, replayCommand))
	handle(wire.Find, call(x, store.find))
	handle(wire.Configure, call(x, store.configure))
	handle(wire.Pause, call(x, store.pause))
	handle(wire.Reschedule, call(x, store.reschedule))
	handle(wire.Maintain, call(x, store.maintain))
	handle(wire.Jobs, call(x, jobs.call))
	mux.Handle("GET "+wire.Explain, ask(x, store.explain))
	mux.Handle("GET "+wire.Stats, ask(x, store.stats))
	mux.Handle("GET "+wire.Settings, ask(x, store.settings))
	mux.Handle("GET "+wire.Schedules, ask(x, store.schedules))
	mux.Handle("GET "+wire.Ready, streams.bounded(streams.ready))
	mux.Handle("GET "+wire.Watch, streams.bounded(streams.watch))
	mux.HandleFunc("GET "+wire.Log, logs.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if method := methodOf(mux, r); method != "" {
			w.Header().Set("Allow", method)
			x.to.refuse(w, http.StatusMethodNotAllowed, "method",
				fmt.Sprintf("the call %.200q is made by %s, and not by %s", r.URL.Path, method, r.Method))
			return
		}
		x.to.refuse(w, http.StatusNotFound, wire.UnknownCall,
			fmt.Sprintf("no call %s %.200q: give the address of the server without a path; or, if the client and the server "+
				"are of different versions, update the older one", r.Method, r.URL.Path))
	})
	return mux
}

// methodOf returns the method of a call that a request has the path of, or "".
func methodOf(mux *http.ServeMux, r *http.Request) string {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			return method
		}
	}
	return ""
}
