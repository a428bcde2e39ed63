package transfer_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/netfault"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/receiver"
)

// receiverDir is the environment variable that makes a process of this test binary a server
// that receives uploads into a directory. It prints its address.
const receiverDir = "STINT_TEST_RECEIVER"

func serveReceiver(dir string) error {
	r, err := receiver.Open(dir, receiver.Config{})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, r) //nolint:gosec // the test ends it
}

// killsOfEach is the number of kills of one side by each test. A long run makes 100: two tests
// kill each side 200 times.
func killsOfEach() int {
	if os.Getenv(seeded.Variable) != "" {
		return 100
	}
	return 8
}

// receiving is a receiver in another process, behind a proxy that stays while it is killed.
type receiving struct {
	t     *testing.T
	dir   string
	proxy *netfault.Proxy
	cmd   *exec.Cmd
}

func newReceiving(t *testing.T) *receiving {
	t.Helper()
	proxy, err := netfault.New("")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiving{t: t, dir: filepath.Join(t.TempDir(), "uploads"), proxy: proxy}
	t.Cleanup(func() {
		r.kill()
		proxy.Close()
	})
	r.resume()
	r.start()
	return r
}

// resume ends the connections with what is in their buffers, and lets new ones pass.
func (r *receiving) resume() {
	r.proxy.Cut()
	r.proxy.Set(netfault.Fault{Piece: 4 << 10})
}

func (r *receiving) start() {
	r.t.Helper()
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), receiverDir+"="+r.dir, "GORACE=atexit_sleep_ms=0")
	r.cmd.Stderr = r.t.Output()
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	r.proxy.Retarget(strings.TrimSpace(line))
}

// kill kills the process, unless it has been killed.
func (r *receiving) kill() {
	if r.cmd == nil || r.cmd.Process == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.cmd = nil
}

func (r *receiving) url() string { return "http://" + r.proxy.Addr() + "/files/" }

// left returns the names of the finished files, and of the data of unfinished uploads.
func left(t *testing.T, dir string) (files, unfinished []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil || entry.IsDir():
			return err
		case filepath.Base(filepath.Dir(path)) != ".uploads":
			files = append(files, name)
		case name != "lock" && !strings.HasSuffix(name, ".log"):
			unfinished = append(unfinished, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, unfinished
}

// wantLeft fails the test unless a directory has these files, and no data of unfinished uploads.
func wantLeft(t *testing.T, dir string, want ...string) {
	t.Helper()
	files, unfinished := left(t, dir)
	if !slices.Equal(files, want) || len(unfinished) > 0 {
		t.Errorf("the server has the files %q and the unfinished %q, want the files %q alone", files, unfinished, want)
	}
}

func wantFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, equal: %t, %v; want %d bytes", path, len(got), bytes.Equal(got, want), err, len(want))
	}
}

// The client or the server is killed at random points. The file arrives, no kill costs more
// than one chunk of each lane, and the server keeps nothing but the file.
func TestE4_KillsOverTheNetwork(t *testing.T) {
	for _, test := range []struct {
		victim string
		lanes  int
	}{{"client", 1}, {"client", 3}, {"server", 1}, {"server", 3}} {
		t.Run(fmt.Sprint(test.victim, test.lanes), func(t *testing.T) {
			const chunksOfKill = 8
			kills, random := killsOfEach(), seeded.Rand(t)
			size := (kills + 1) * chunksOfKill * chunkSize
			s := newReceiving(t)
			dir, want := t.TempDir(), content(uint64(test.lanes), size)
			path, store := filepath.Join(dir, "a"), filepath.Join(dir, "store")
			write(t, path, want)
			addTo(t, store, transfer.Upload{Path: path, To: s.url(), ChunkSize: chunkSize, Lanes: test.lanes, Verify: true})
			// The store has the URLs when a lane sends its second chunk.
			next := s.proxy.StallAfter(int64(test.lanes+1) * (chunkSize + 1<<10))
			client := startWorker(t, store)
			for rest := kills; rest > 0; rest-- {
				select {
				case <-next:
				case err := <-client.done:
					t.Fatalf("the client ended with %v before the kill; %d bytes have passed", err, s.proxy.Passed())
				case <-time.After(10 * time.Minute):
					t.Fatalf("only %d bytes have passed", s.proxy.Passed())
				}
				if test.victim == "client" {
					client.kill(t)
				} else {
					s.kill()
				}
				s.resume()
				if rest > 1 {
					next = s.proxy.StallAfter(1 + random.Int64N((chunksOfKill-int64(test.lanes))*chunkSize))
				}
				if test.victim == "client" {
					client = startWorker(t, store)
				} else {
					s.start()
				}
			}
			if err := <-client.done; err != nil {
				t.Fatal(err)
			}
			passed := s.proxy.Passed()
			s.kill()
			wantFile(t, filepath.Join(s.dir, "a"), want)
			wantLeft(t, s.dir, "a")
			// Besides chunks there are headers, of less than 1 KiB a request.
			requests := size/chunkSize + kills*test.lanes*10
			if most := int64(size + kills*test.lanes*chunkSize + requests<<10); passed > most {
				t.Errorf("%d bytes were sent, want %d at most", passed, most)
			}
			t.Logf("%d kills, %d bytes of %d sent again, with headers", kills, passed-int64(size), size)
		})
	}
}

// A client that is killed before its store has the URLs of its uploads, and uploads that are
// cancelled, leave nothing once they have expired or have been cancelled.
func TestE4_KillsLeaveNothing(t *testing.T) {
	random := seeded.Rand(t)
	for _, lanes := range []int{1, 3} {
		s := newReceiving(t)
		dir, want := t.TempDir(), content(9, 12*chunkSize)
		path, store := filepath.Join(dir, "a"), filepath.Join(dir, "store")
		write(t, path, want)
		addTo(t, store, transfer.Upload{Path: path, To: s.url(), ChunkSize: chunkSize, Lanes: lanes})
		for range 4 {
			next := s.proxy.StallAfter(1 + random.Int64N(int64(lanes)*chunkSize))
			client := startWorker(t, store)
			select {
			case <-next:
			case <-time.After(time.Minute):
				t.Fatalf("only %d bytes have passed", s.proxy.Passed())
			}
			client.kill(t)
			s.resume()
		}
		// Cancelled while no process works on it: Terminate deletes what the store knows.
		opened, err := filestore.Open(store, filestore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		q := queue.New(opened, queue.Config{})
		for task, err := range q.Find(t.Context(), queue.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Cancel(t.Context(), task.ID); err != nil {
				t.Fatal(err)
			}
			if task, err = q.Get(t.Context(), task.ID); err != nil {
				t.Fatal(err)
			}
			if task.State != queue.Cancelled {
				// The lease of the killed worker has not ended. The worker that takes it over cancels it.
				if err := opened.Close(); err != nil {
					t.Fatal(err)
				}
				if err := <-startWorker(t, store).done; err != nil {
					t.Fatal(err)
				}
				break
			}
			if err := transfer.Terminate(t.Context(), task, transfer.Config{}); err != nil {
				t.Fatal(err)
			}
		}
		_ = opened.Close()
		s.kill()
		r, err := receiver.Open(s.dir, receiver.Config{Expiry: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		late := time.After(time.Minute)
		for {
			entries, err := os.ReadDir(filepath.Join(s.dir, ".uploads"))
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) == 1 { // the lock
				break
			}
			select {
			case <-time.After(time.Millisecond):
			case <-late:
				t.Fatalf("left after the expiry: %v", entries)
			}
		}
		wantLeft(t, s.dir)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A client that dies between the concatenation and its outcome makes no second file: the next
// worker asks for the same concatenation again.
func TestE4_KilledAfterConcatenation(t *testing.T) {
	const lanes = 3
	for _, chunks := range []int{lanes, 4 * lanes} {
		t.Run(fmt.Sprint(chunks), func(t *testing.T) {
			lost := func(r *http.Request) bool { return strings.HasPrefix(r.Header.Get("Upload-Concat"), "final;") }
			killedBeforeAnswer(t, transfer.Upload{ChunkSize: chunkSize, Lanes: lanes}, chunks*chunkSize, lost)
		})
	}
}

// A client that dies before it has kept the answer to a creation or to the last request makes no second file of a small
// one, and no second part of another: the URL of such an upload is not in its store.
func TestE4_KilledBeforeTheAnswer(t *testing.T) {
	for _, test := range []struct {
		name, method string
		size, lanes  int
	}{
		{"creation", http.MethodPost, 1000, 1},
		{"one chunk", http.MethodPatch, 1000, 1},
		{"empty", http.MethodPatch, 0, 1},
		{"the first of two chunks", http.MethodPatch, 2 * chunkSize, 1},
		{"creation of a lane", http.MethodPost, 6 * chunkSize, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			lost := func(r *http.Request) bool { return r.Method == test.method }
			u := transfer.Upload{ChunkSize: chunkSize, Lanes: test.lanes}
			if n := killedBeforeAnswer(t, u, test.size, lost); n != int64(test.size) {
				t.Errorf("%d bytes were sent of %d", n, test.size)
			}
		})
	}
}

// killedBeforeAnswer uploads a file by a client that is killed before it receives the answer to the
// first request that lost matches, and then by another one. The receiver has the file then, and
// nothing else. It returns how many bytes were sent.
func killedBeforeAnswer(t *testing.T, u transfer.Upload, size int, lost func(*http.Request) bool) (sent int64) {
	t.Helper()
	dir := t.TempDir()
	received := filepath.Join(dir, "uploads")
	r, err := receiver.Open(received, receiver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var matched, body atomic.Int64
	answered, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body.Add(max(req.ContentLength, 0))
		if !lost(req) || matched.Add(1) > 1 {
			r.ServeHTTP(w, req)
			return
		}
		r.ServeHTTP(httptest.NewRecorder(), req)
		close(answered)
		<-release
	}))
	defer server.Close()
	want := content(4, size)
	path, store := filepath.Join(dir, "a"), filepath.Join(dir, "store")
	write(t, path, want)
	u.Path, u.To = path, server.URL+"/files/"
	addTo(t, store, u)
	client := startWorker(t, store)
	select {
	case <-answered:
	case err := <-client.done:
		t.Fatalf("the client ended with %v before it was killed", err)
	}
	client.kill(t)
	close(release)
	if err := <-startWorker(t, store).done; err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wantFile(t, filepath.Join(received, "a"), want)
	wantLeft(t, received, "a")
	return body.Load()
}

// kill kills the process, which must not have ended.
func (w worker) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-w.done; !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the process had ended before it was killed: %v", err)
	}
}
