package transfer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// Each piece is sent with its length, also an empty one: that of an empty file, and that at the end of the input.
func TestE4_PiecesHaveTheirLength(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			front := httptest.NewUnstartedServer(nil)
			front.EnableHTTP2 = http2
			front.StartTLS()
			t.Cleanup(front.Close)
			r := newRig(t, transfer.Config{Client: front.Client(), Input: strings.NewReader(string(content(1, chunkSize)))})
			front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Proto != name || req.Method == http.MethodPatch && req.ContentLength < 0 {
					t.Errorf("%s: a %s has the length %d", req.Proto, req.Method, req.ContentLength)
				}
				r.server.ServeHTTP(w, req)
			})
			to := transfer.Upload{To: front.URL + "/files/", ChunkSize: chunkSize}
			empty := r.add("empty", nil, to, queue.Options{})
			to.Path = transfer.Input
			input := r.addUpload(to, queue.Options{})
			r.run(1)
			for _, id := range []queue.ID{empty, input} {
				r.wait(id, queue.Succeeded)
			}
			if n := r.server.count(http.MethodPatch); n != 3 {
				t.Errorf("%d pieces were sent; want 1 of the file and 2 of the input: %q", n, r.server.requests)
			}
		})
	}
}
