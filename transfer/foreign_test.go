package transfer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// A redirect is not followed, by no method and to no host: it could send the secret headers of
// an upload elsewhere. It ends the upload at once.
func TestRedirectsAreRefused(t *testing.T) {
	t.Setenv("STINT_UPLOAD_SECRET", "secret")
	var mu sync.Mutex
	var got []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, req.Method+" "+req.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{"OPTIONS", "POST", "PATCH"} {
			// The client of the configuration follows redirects.
			r := newRig(t, transfer.Config{Client: &http.Client{}})
			r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
				if req.Method == method {
					http.Redirect(w, req, elsewhere.URL+"/files/", status)
				}
				return req.Method == method
			}
			id := r.runs(r.add("a", []byte("abc"), transfer.Upload{
				HeaderEnv: map[string]string{"Authorization": "STINT_UPLOAD_SECRET"},
			}, queue.Options{}))
			task := r.wait(id, queue.Dead)
			if task.Failures != 1 || !strings.Contains(task.Error, http.StatusText(status)) {
				t.Errorf("%d for %s: %d failures, %s", status, method, task.Failures, task.Error)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) > 0 {
		t.Errorf("the other host got %q", got)
	}
}

// An upload of the standard input of an earlier process does not get the present one, which is
// left for the upload that is meant.
func TestInputIsForItsUpload(t *testing.T) {
	const text = "the input of this process"
	input := strings.NewReader(text)
	r := newRig(t, transfer.Config{Input: input, InputName: "mine"})
	r.run(1)
	for _, name := range []string{"", "earlier"} {
		u := transfer.Upload{Path: transfer.Input, Name: "x", InputName: name}
		task := r.wait(r.addUpload(u, queue.Options{}), queue.Dead)
		if !strings.Contains(task.Error, "no input, another one") {
			t.Errorf("the upload of the input %q failed with %s", name, task.Error)
		}
	}
	if input.Len() != len(text) {
		t.Errorf("%d bytes of the input were read", len(text)-input.Len())
	}
	mine := transfer.Upload{Path: transfer.Input, Name: "x", InputName: "mine"}
	r.wait(r.addUpload(mine, queue.Options{}), queue.Succeeded)
	r.server.has(t, "x", []byte(text))
}
