package serve

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/transfer/browser"
	"github.com/stintgo/stint/transfer/receiver"
)

// UploadsTokenName is the name of the file, in the directory of a server, with the token that
// uploads need. It allows nothing else.
const UploadsTokenName = "uploads-token"

// Uploads configures the uploads that a server receives.
type Uploads struct {
	Dir     string  // of the finished files; empty: it receives none
	Listen  string  // a TCP address of this machine
	Rate    float64 // bytes per second of all together; 0 means no limit
	Jobs    int     // how many requests receive at once
	MaxSize int64   // of a file, in bytes; 0 means no limit
	Quota   int64   // of all unfinished files, in bytes; 0 means no limit
	// Then is a shell command that is submitted for each finished file, with the path as $1;
	// empty: none. The task has the unique name "upload ID".
	Then string
}

// uploads is the server of uploads.
type uploads struct {
	receiver *receiver.Receiver
	http     *http.Server
	listener net.Listener
	slots    stint.Scheduler
}

// uploadsPath is where uploads are created; the page for browsers is at "/".
const uploadsPath = "/files/"

// headerTimeout is how long a client may take to send the header of a request.
const headerTimeout = 10 * time.Second

// headerMax is the largest header of a request in bytes. The receiver takes 16 KiB of metadata.
const headerMax = 64 << 10

// idleTimeout is how long a connection may be without a request.
const idleTimeout = 2 * time.Minute

// openUploads opens the directory and the address of uploads.
func openUploads(ctx context.Context, cfg *Config, q *queue.Queue) (_ *uploads, err error) {
	if err := checkUploadsDir(cfg.Dir, cfg.Uploads.Dir); err != nil {
		return nil, err
	}
	u := &uploads{slots: stint.New(cfg.Uploads.Jobs, stint.Config{})}
	to := receiver.Config{
		MaxSize: cfg.Uploads.MaxSize, Quota: cfg.Uploads.Quota, Slots: &u.slots, Logger: cfg.Logger,
	}
	if cfg.Uploads.Rate > 0 {
		rate := stint.NewLimiter(cfg.Uploads.Rate, stint.LimiterConfig{})
		to.Rate = &rate
	}
	if cfg.Uploads.Then != "" {
		if _, err := thenCommand(cfg.Uploads.Then, cfg.Uploads.Dir); err != nil {
			return nil, err
		}
		to.Finished = func(ctx context.Context, done receiver.Upload) error {
			return submitThen(ctx, q, thenQueue(cfg.Queues), cfg.Uploads.Then, done)
		}
	}
	page, err := browser.New(browser.Config{Endpoint: uploadsPath, Token: true})
	if err != nil {
		return nil, err
	}
	token, err := openToken(cfg.Dir, UploadsTokenName)
	if err != nil {
		return nil, err
	}
	if u.receiver, err = receiver.Open(cfg.Uploads.Dir, to); err != nil {
		return nil, fmt.Errorf("--uploads: %w", err)
	}
	err = retryWhile(ctx, cfg.Patience, syscall.EADDRINUSE, func() error {
		u.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Uploads.Listen)
		return err
	})
	if err != nil {
		err = fmt.Errorf("%w; choose another address with --uploads-listen", err)
		return nil, errors.Join(err, u.receiver.Close())
	}
	u.http = uploadsServer(token, u.receiver, page)
	return u, nil
}

// uploadsServer serves the page without a token: the page asks for the token and has no secrets.
func uploadsServer(token string, uploads, page http.Handler) *http.Server {
	mux := http.NewServeMux()
	mux.Handle(uploadsPath, withToken(token, uploads))
	mux.Handle("/", readBriefly(page))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerMax,
	}
}

// address is the URL at which uploads are created.
func (u *uploads) address() string { return "http://" + u.listener.Addr().String() + uploadsPath }

// run serves until ctx ends. Requests that receive are interrupted then; their clients
// continue at the next start.
func (u *uploads) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = u.http.Close() }) // the end of Serve says more
	defer stop()
	err := u.http.Serve(u.listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, u.receiver.Close())
}

// withToken passes requests on that have the token. It compares in constant time.
func withToken(token string, next http.Handler) http.Handler {
	refuse := readBriefly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "send the header Authorization: Bearer TOKEN with the token in the file "+UploadsTokenName+
			" of the server's directory", http.StatusUnauthorized)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 0 {
			refuse.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readBriefly limits the time for the body of a request whose handler does not read it: net/http
// reads the first 256 KiB of the body before it answers. The receiver limits the bodies of its uploads.
func readBriefly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// net/http removes the deadline before the next request; without one the answer waits longer
		_ = http.NewResponseController(w).SetReadDeadline(clock.Now().Add(headerTimeout))
		next.ServeHTTP(w, r)
	})
}

// thenQueue returns the queue of the commands of finished files: the default queue if this server takes
// tasks from it, and otherwise the first queue from which it does.
func thenQueue(queues []string) string {
	if len(queues) == 0 || slices.Contains(queues, queue.DefaultQueue) {
		return queue.DefaultQueue
	}
	return queues[0]
}

// thenCommand returns the command for a received file. It returns an error if the store cannot keep the command, which
// it does in JSON.
func thenCommand(then, file string) (isolate.Command, error) {
	dir, err := os.Getwd()
	if err != nil {
		return isolate.Command{}, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return isolate.Command{}, err
	}
	command := isolate.Command{Args: []string{"/bin/sh", "-c", then, "stint", file}, Dir: dir}
	if err := command.Validate(); err != nil {
		return command, fmt.Errorf("--then: its text and the paths of --uploads and of the present directory must be "+
			"UTF-8: %w", err)
	}
	return command, nil
}

// submitThen submits the command for a finished file to a queue. It is called again until it has
// succeeded once.
func submitThen(ctx context.Context, q *queue.Queue, name, then string, done receiver.Upload) error {
	command, err := thenCommand(then, done.Path)
	if err != nil {
		return err
	}
	_, err = queue.Kind[isolate.Command](Kind).Submit(ctx, q, command, queue.Options{
		Queue: name, Unique: "upload " + done.ID, MaxAttempts: 1, Tier: done.Priority, Key: done.Key,
	})
	return err
}
