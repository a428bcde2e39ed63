// Command fileserver serves files over HTTP. Several of its processes share one limit on
// reading from the disk, and the header Priority of a request (RFC 9218) decides which
// read goes first, across all processes.
//
//	fileserver -dir /srv/files -addr 127.0.0.1:8080 -max 8 -local 4
//	curl -H 'Priority: u=0' http://127.0.0.1:8080/report.pdf
//	curl http://127.0.0.1:8080/status
//
// With -demo 200 it starts three servers and shows the effect of priorities. README.md
// has more, and lists the files.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

type config struct {
	dir, addr, shared string
	max, local        int
	readTime          time.Duration
}

func main() {
	cfg, demo := flags()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	var err error
	if demo > 0 {
		err = runDemo(ctx, demo)
	} else {
		err = serve(ctx, cfg, slowed(cfg.readTime))
	}
	if err != nil {
		log.Fatalf("fileserver: %v", err)
	}
}

func flags() (cfg config, demo int) {
	flag.StringVar(&cfg.dir, "dir", ".", "serve the files in `DIR`")
	flag.StringVar(&cfg.addr, "addr", "127.0.0.1:8080", "listen at `HOST:PORT`; port 0 is one that is free")
	flag.StringVar(&cfg.shared, "shared", "fileserver", "share the limit with all servers that are given the same `NAME`")
	flag.IntVar(&cfg.max, "max", 8, "at most `N` reads at once over all servers, which must agree on it")
	flag.IntVar(&cfg.local, "local", 4, "at most `N` reads at once in this server")
	flag.DurationVar(&cfg.readTime, "read-time", 0, "pretend that each read takes `TIME` longer, as on a slow disk")
	flag.IntVar(&demo, "demo", 0, "serve nothing, but start three servers and measure `N` requests beside many downloads")
	flag.Parse()
	return cfg, demo
}

const (
	// stall is how long a chunk may wait to be sent. It does not limit the whole answer:
	// a large file takes its time, and one of low priority may wait for long. It must be
	// long: systems buffer megabytes, and a slow client makes room there in steps of up
	// to about 2 MB. So 2 minutes are enough from about 20 kB/s, while 30 seconds would
	// cut off some clients of 80 kB/s.
	stall = 2 * time.Minute

	// grace is how long downloads may take to end by themselves.
	grace = 10 * time.Second
)

// serve prints its address, and serves files until ctx ends and all downloads have ended.
func serve(ctx context.Context, cfg config, read readFunc) error {
	if cfg.local < 1 || cfg.local > cfg.max {
		return fmt.Errorf("-local is %d, must be from 1 to -max, which is %d", cfg.local, cfg.max)
	}
	root, err := os.OpenRoot(cfg.dir) // no path and no symbolic link leads outside
	if err != nil {
		return err
	}
	region, err := shm.OpenContext(ctx, cfg.shared, shm.Geometry{Slots: []int{cfg.max}})
	if err != nil {
		return err
	}
	d := &disk{root: root, read: read, slots: stint.New(cfg.local, stint.Config{Slots: region.Slots(0)})}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           d.routes(),
		ReadHeaderTimeout: 20 * time.Second,
		WriteTimeout:      stall, // restarted by each read: see onSlot
		IdleTimeout:       time.Minute,
	}
	fmt.Printf("http://%s\n", listener.Addr())
	if err := serveUntil(ctx, server, listener); err != nil {
		// Reads may be running. The region is not closed here: the kernel ends the reads
		// with this process, and only then do their slots go to other servers.
		return err
	}
	return errors.Join(region.Close(), root.Close())
}

func serveUntil(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return fmt.Errorf("downloads were cut off: %w", err)
	}
	return nil
}

func (d *disk) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", d)
	mux.HandleFunc("GET /status", d.status)
	return mux
}

// status returns the state of this server and, in "shared", of all servers. "why" is what
// a read for this request would have to wait for.
func (d *disk) status(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(map[string]any{ // fails if the client has gone
		"stats": d.slots.Stats(),
		"why":   d.slots.At(priorityOf(r.Header)).Why(),
	})
}
