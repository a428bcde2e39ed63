package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// repeated returns a JSON list of n items.
func repeated(item string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// packedList returns a packed value whose first field is a list of n items.
func packedList(n int, item string) string {
	return string(binary.AppendUvarint([]byte{1}, uint64(n)+1)) + strings.Repeat(item, n)
}

// oneLabel is a packed task with a label: the second field of a task is its Spec, whose third are
// its Options, whose 16th is Labels.
const oneLabel = "\x02\x04\x80\x80\x02\x02\x00\x00"

// worstBodies returns bodies of a few megabytes that take the most memory when decoded.
func worstBodies() map[string][]string {
	const many = 1_000_000
	names := `{` + strings.TrimSuffix(strings.Repeat(`"%d":"",`, 9000), ",") + `}`
	numbers := make([]any, 9000)
	for i := range numbers {
		numbers[i] = i
	}
	labels := fmt.Sprintf(names, numbers...)
	filters := []string{
		`"ids":` + repeated("null", many), `"states":` + repeated(`"dead"`, many), `"labels":` + labels,
	}
	of := func(before string, inside []string, after string) (bodies []string) {
		for _, text := range inside {
			bodies = append(bodies, before+text+after)
		}
		return bodies
	}
	submit, _ := wire.PackedPath(wire.Submit)
	claim, _ := wire.PackedPath(wire.Claim)
	return map[string][]string{
		submit: {
			packedList(many, "\x00"), packedList(wire.ItemsMost, "\x00"), packedList(wire.ItemsMost, oneLabel),
			packedList(wire.ItemsMost, "\x00")[:1<<10], // for which no memory is reserved
		},
		claim: {"\x04" + packedList(many, "\x00")[1:], "\x01" + string(binary.AppendUvarint(nil, 1<<62))},
		wire.Submit: {
			`{"tasks":` + repeated("{}", many) + `}`, `{"tasks":` + repeated(`{"after":`+repeated("null", 9000)+`}`, 100) + `}`,
			`{"tasks":` + repeated(`{"labels":`+labels+`}`, 40) + `}`,
			`{"tasks":[{"payload":"` + strings.Repeat("A", many) + `"}]}`,
			`{"tasks":` + repeated("["+repeated("0", 9000)+"]", 100) + `}`, strings.Repeat("[", many),
		},
		wire.Settle: {`{"outcomes":` + repeated("{}", many) + `}`},
		wire.Heartbeat: {
			`{"heartbeats":` + repeated("{}", many) + `}`, `{"worker":{"kinds":{"q":` + repeated(`""`, many) + `}}}`,
		},
		wire.Claim:   {`{"kinds":` + repeated(`""`, many) + `}`, `{"worker":"` + strings.Repeat("w", many) + `"}`},
		wire.Command: of(`{"do":"cancel","filter":{`, filters, `}}`),
		wire.Find:    of(`{"filter":{`, filters, `}}`),
		wire.Reschedule: {
			`{"tasks":` + repeated("{}", many) + `}`, `{"to":{"task":{"after":` + repeated("null", many) + `}}}`,
		},
		wire.Configure: {`{"queue":"` + strings.Repeat("q", many) + `"}`},
		wire.Pause:     {`{"pause":{"reason":"` + strings.Repeat("r", many) + `"}}`},
		wire.Maintain:  {strings.Repeat(" ", many) + repeated("{}", many)},
	}
}

// A body with bytes that are not in base64 is refused with what they have to be.
func TestC4_BytesThatAreNotInBase64(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{})
	for payload, want := range map[string]string{
		`{"to":"a@b.c"}`: "payload is bytes, a string in base64, and not object",
		`"hello!"`:       "bytes are a string in base64: illegal base64 data at input byte 5",
	} {
		r := httptest.NewRequest(http.MethodPost, wire.Submit, strings.NewReader(`{"tasks":[{"payload":`+payload+`}]}`))
		r.Host = "localhost"
		r.Header.Set(wire.Client, "test")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("payload %s is answered %d %s, want 400 and %q", payload, w.Code, w.Body, want)
		}
	}
}

// TestC6_WorstBodies: decoding and refusing any body takes a small multiple of the
// documented memory, most of it garbage at once.
func TestC6_WorstBodies(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{})
	defer s.Close()
	for path, bodies := range worstBodies() {
		for _, text := range bodies {
			r := request(http.MethodPost, path, text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status, code := answered(t, s, r)
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			if bound := uint64(3 * wire.Cost(int64(len(text)))); took > bound || status >= 500 {
				t.Errorf("%s of %.40s… (%d bytes) is answered %d %s, and takes %d MiB, want %d at most", path, text, len(text),
					status, code, took>>20, bound>>20)
			}
			t.Logf("%s of %.40s… (%d bytes): %d %s, %d KiB", path, text, len(text), status, code, took>>10)
		}
	}
}

// blocked is a store whose Submit blocks until the test releases it.
type blocked struct {
	memstore.Store
	begun, goOn chan struct{}
}

func (b blocked) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	b.begun <- struct{}{}
	<-b.goOn
	return b.Store.Submit(ctx, now, tasks)
}

// TestC6_BodiesTogetherAreBounded: while two calls of the largest size are executed, a
// third waits and small ones do not.
func TestC6_BodiesTogetherAreBounded(t *testing.T) {
	const largest = 8 << 10
	store := blocked{memstore.New(memstore.Config{}), make(chan struct{}), make(chan struct{})}
	s := server.New(store, server.Config{MaxBody: largest, Timeout: 20 * time.Millisecond})
	defer s.Close()
	large := func(n byte) *http.Request {
		text := fmt.Sprintf(`{"tasks":[{"id":"01890a5d-ac96-774b-bcce-b302099a80%02x","kind":"k"}]}`, n)
		return request(http.MethodPost, wire.Submit, text+strings.Repeat(" ", largest-len(text)))
	}
	done := make(chan int)
	for n := range byte(2) {
		go func() {
			status, _ := answered(t, s, large(n))
			done <- status
		}()
		<-store.begun
	}
	if status, code := answered(t, s, large(2)); status != http.StatusServiceUnavailable || code != "unavailable" {
		t.Errorf("a third large call is answered %d %s", status, code)
	}
	if status, code := answered(t, s, request(http.MethodPost, wire.Claim, claim)); status != http.StatusOK {
		t.Errorf("a small call meanwhile is answered %d %s", status, code)
	}
	close(store.goOn)
	for range 2 {
		if status := <-done; status != http.StatusOK {
			t.Errorf("a call of the largest size is answered %d", status)
		}
	}
	go func() { <-store.begun }()
	if status, code := answered(t, s, large(3)); status != http.StatusOK {
		t.Errorf("the next large call is answered %d %s", status, code)
	}
}

// unread is the connection of a client that does not read the answer before the test releases it.
type unread struct {
	*httptest.ResponseRecorder
	begun, goOn chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	u.begun <- struct{}{}
	<-u.goOn
	return u.ResponseRecorder.Write(p)
}

// TestC6_UnreadAnswersFreeTheMemoryOfBodies: the calls of clients that do not read their answers leave
// the memory for bodies to others.
func TestC6_UnreadAnswersFreeTheMemoryOfBodies(t *testing.T) {
	const largest = 8 << 10
	s := server.New(memstore.New(memstore.Config{}), server.Config{MaxBody: largest, Timeout: 20 * time.Millisecond})
	defer s.Close()
	for _, call := range []struct{ path, body string }{
		{wire.Submit, `{"tasks":[]}`}, {wire.Claim, claim}, {wire.Submit, `{"tasks":[`},
	} {
		large := func() *http.Request {
			return request(http.MethodPost, call.path, call.body+strings.Repeat(" ", largest-len(call.body)))
		}
		begun, goOn := make(chan struct{}), make(chan struct{})
		var served sync.WaitGroup
		for range 2 {
			served.Go(func() { s.ServeHTTP(unread{httptest.NewRecorder(), begun, goOn}, large()) })
			<-begun
		}
		if status, code := answered(t, s, large()); status == http.StatusServiceUnavailable {
			t.Errorf("while two answers of %s are not read, a call is answered %d %s", call.path, status, code)
		}
		close(goOn)
		served.Wait()
	}
}

// TestC6_LargeBodiesAreAnswered: a client that sends a whole body before it reads gets
// the answer that the body is too large, and no connection reset.
func TestC6_LargeBodiesAreAnswered(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(memstore.New(memstore.Config{}), server.Config{MaxBody: 1 << 20, MaxItem: 1 << 19})
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	const chunk = 1 << 16
	for name, send := range map[string]struct{ path, length, each, after string }{
		"says its length": {wire.Submit, fmt.Sprint("Content-Length: ", 320*chunk), strings.Repeat("x", chunk), ""},
		"comes in chunks": {
			wire.Submit, "Transfer-Encoding: chunked", "10000\r\n" + strings.Repeat(" ", chunk) + "\r\n", "0\r\n\r\n",
		},
		"has no list":      {wire.Claim, fmt.Sprint("Content-Length: ", 320*chunk), strings.Repeat(" ", chunk), ""},
		"has a large item": {wire.Submit, fmt.Sprint("Content-Length: ", 15*chunk), strings.Repeat("[", chunk), ""},
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nStint-Client: raw\r\n"+
			"Content-Type: application/json\r\n%s\r\n\r\n", send.path, send.length)
		chunks := 320
		if name == "has a large item" {
			chunks = 15
		}
		for range chunks {
			if err == nil {
				_, err = io.WriteString(conn, send.each)
			}
		}
		if err == nil && send.after != "" { // otherwise all was read, and the connection may be closed
			_, err = io.WriteString(conn, send.after)
		}
		if err != nil {
			t.Errorf("a body that %s cannot be sent: %v", name, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("a body that %s is not answered: %v", name, err)
			continue
		}
		text, err := io.ReadAll(res.Body)
		tooLarge := strings.Contains(string(text), `"code":"too_large"`)
		if res.StatusCode != http.StatusRequestEntityTooLarge || err != nil || !tooLarge || !res.Close {
			t.Errorf("a body that %s is answered %d %s, %v", name, res.StatusCode, text, err)
		}
		res.Body.Close()
		conn.Close()
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
