//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/server"
)

// A process of the harness is this test binary, started with these variables: its role,
// its unique name, and the directory of the harness.
const (
	processIs   = "STINT_CRASHTEST_PROCESS"
	processName = "STINT_CRASHTEST_NAME"
	processDir  = "STINT_CRASHTEST_DIR"

	// Of a node: the database server, the lease of a leader, and the addresses of
	// cluster.Config.
	processURL     = "STINT_CRASHTEST_URL"
	processLease   = "STINT_CRASHTEST_LEASE"
	processListen  = "STINT_CRASHTEST_LISTEN"
	processAddress = "STINT_CRASHTEST_ADDRESS"

	isServer = "server"
	isWorker = "worker"
	isNode   = "node" // of a cluster
)

// Names in the directory.
const (
	storeDir    = "store"
	socketFile  = "socket"
	logFile     = "log"
	releaseFile = "release" // tasks that wait for it continue once it exists
)

// The limits of the queue: together the processes have more slots than the limits allow.
const (
	workers     = 8
	workerSlots = 2
	serverSlots = 1 // the server works on tasks too
	queueMax    = 10
	keyMax      = 2

	lease    = 600 * time.Millisecond
	attempts = 3
)

func TestMain(m *testing.M) {
	dir, name := os.Getenv(processDir), os.Getenv(processName)
	var err error
	switch os.Getenv(processIs) {
	case isServer:
		err = serve(dir, name)
	case isWorker:
		err = work(dir, name)
	case isNode:
		var lease time.Duration
		if lease, err = time.ParseDuration(os.Getenv(processLease)); err == nil {
			err = node(dir, name, os.Getenv(processURL), lease)
		}
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, name, "ends:", err)
	os.Exit(1) // these processes are meant to be killed
}

// serve opens the store, serves it to the others, and works on tasks.
func serve(dir, name string) error {
	store, err := filestore.Open(filepath.Join(dir, storeDir), filestore.Config{})
	if err != nil {
		return err
	}
	return serveAndWork(store, dir, socketFile, name, serverSlots)
}

// serveAndWork serves a store at a socket, and works on its tasks.
func serveAndWork(store queue.Store, dir, socket, name string, slots int) error {
	socket = filepath.Join(dir, socket)
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := listen(socket)
	if err != nil {
		return err
	}
	s := server.New(store, server.Config{})
	ended := make(chan error, 2)
	go func() { ended <- s.Serve(context.Background(), l) }()
	go func() { ended <- run(store, dir, name, slots) }()
	return <-ended
}

// work works on tasks of the server's store.
func work(dir, name string) error {
	store, err := httpstore.Open("unix:"+filepath.Join(dir, socketFile), httpstore.Config{})
	if err != nil {
		return err
	}
	return run(store, dir, name, workerSlots)
}

func run(store queue.Store, dir, name string, slots int) error {
	log, err := openLog(filepath.Join(dir, logFile), name)
	if err != nil {
		return err
	}
	q := queue.New(store, queue.Config{
		Worker: name, Lease: lease, Poll: 200 * time.Millisecond,
		Retry: retry.Policy{Base: 20 * time.Millisecond, Max: 100 * time.Millisecond},
	})
	h := handler{log: log, release: filepath.Join(dir, releaseFile)}
	queue.Kind[plan](kind).Handle(q, h.work)
	return q.Run(context.Background(), stint.New(slots, stint.Config{}))
}

// now returns the time in nanoseconds of a clock that all processes of the machine share
// and that cannot be set.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
