package transfer_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// TestE2_TerminateKeepsNoConnections: many uploads are terminated over one connection, which is kept open for the
// next.
func TestE2_TerminateKeepsNoConnections(t *testing.T) {
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(newTusServer(t))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	payload, err := json.Marshal(transfer.Upload{Path: "/a", To: server.URL + "/files/"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		checkpoint := fmt.Sprintf(`{"version":1,"file":{"size":0},"chunk_size":1,"urls":["%s/files/%d"]}`, server.URL, i)
		var task queue.Task
		task.Kind, task.Payload = string(transfer.Kind), payload
		task.State, task.Checkpoint = queue.Cancelled, []byte(checkpoint)
		if err := transfer.Terminate(t.Context(), task, transfer.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("20 uploads were terminated over %d connections", n)
	}
}
