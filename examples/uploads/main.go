// Command uploads is a server of its own that receives files: over tus for programs, and from a page for browsers.
// README.md says how to try it and what to copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/transfer/browser"
	"github.com/stintgo/stint/transfer/receiver"
)

func main() {
	dir := flag.String("dir", "inbox", "the directory of the received files")
	addr := flag.String("addr", "127.0.0.1:8080", "the address to listen at")
	rate := flag.Float64("rate", 50<<20, "bytes per second over all uploads")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *addr, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "uploads:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, dir, addr string, rate float64) error {
	handler, files, err := newHandler(dir, rate)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	end := context.AfterFunc(ctx, func() { _ = server.Close() }) // uploads continue after the next start
	defer end()
	fmt.Printf("open http://%s/ in a browser; files arrive in %s\n", addr, dir)
	if err = server.ListenAndServe(); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, files.Close())
}

// newHandler returns the routes of the server, and the receiver, which must be closed.
func newHandler(dir string, rate float64) (http.Handler, *receiver.Receiver, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	limiter := stint.NewLimiter(rate, stint.LimiterConfig{})
	slots := stint.New(16, stint.Config{}) // requests that receive at once
	files, err := receiver.Open(dir, receiver.Config{
		Rate: &limiter, Slots: &slots, Logger: log,
		Finished: func(_ context.Context, u receiver.Upload) error {
			log.Info("received", slog.String("path", u.Path), slog.Int64("bytes", u.Size))
			return nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	page, err := browser.New(browser.Config{Endpoint: "/files/"})
	if err != nil {
		return nil, nil, errors.Join(err, files.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/upload/", http.StripPrefix("/upload", page))
	mux.Handle("/files/", files) // put the check of your application's users in front of both
	mux.Handle("/{$}", http.RedirectHandler("/upload/", http.StatusFound))
	return mux, files, nil
}
