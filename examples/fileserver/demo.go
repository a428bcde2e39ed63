package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Sizes of the demonstration.
const (
	demoServers   = 3
	demoMax       = 4
	demoReadTime  = 10 * time.Millisecond
	demoDownloads = 24
)

// runDemo measures requests one after the other: alone, beside endless downloads of low
// priority, and beside endless downloads of the same priority.
func runDemo(ctx context.Context, requests int) error {
	dir, err := os.MkdirTemp("", "fileserver")
	if err != nil {
		return err
	}
	return errors.Join(demoIn(ctx, dir, requests), os.RemoveAll(dir))
}

func demoIn(ctx context.Context, dir string, requests int) (err error) {
	for name, size := range map[string]int{"page": chunkSize, "archive": 64 * chunkSize} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			return err
		}
	}
	var urls []string
	for range demoServers {
		url, stop, startErr := startServer(ctx, dir)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, stop()) }()
		urls = append(urls, url)
	}
	fmt.Printf("%d servers, at most %d reads at once over all of them, each of %v; %d requests, one after the other\n\n",
		demoServers, demoMax, demoReadTime, requests)
	fmt.Printf("%-33s %9s %9s %14s\n", "requests", "p50", "p99", "downloads")
	for _, beside := range []string{"", "u=7", "u=0"} {
		if err := measure(ctx, requests, urls, beside); err != nil {
			return err
		}
	}
	return nil
}

// startServer starts this program as a server.
func startServer(ctx context.Context, dir string) (url string, stop func() error, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "-dir", dir, "-addr", "127.0.0.1:0", "-shared", filepath.Join(dir, "region"),
		"-max", strconv.Itoa(demoMax), "-local", strconv.Itoa(demoMax), "-read-time", demoReadTime.String())
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(errors.New("a server did not start"), cmd.Wait())
	}
	stop = func() error { return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) }
	return strings.TrimSpace(line), stop, nil
}

// measure prints how long requests of u=0 take beside downloads of a priority; "" means
// no downloads.
func measure(ctx context.Context, requests int, urls []string, beside string) error {
	title := "u=0, alone"
	stop := func() (bytes int64) { return 0 }
	if beside != "" {
		title = fmt.Sprintf("u=0, beside %d downloads of %s", demoDownloads, beside)
		stop = download(ctx, urls, beside)
	}
	began := time.Now()
	took := make([]time.Duration, requests)
	for i := range took {
		sent := time.Now()
		if _, err := get(ctx, urls[i%len(urls)]+"/page", "u=0"); err != nil {
			stop()
			return err
		}
		took[i] = time.Since(sent)
	}
	elapsed := time.Since(began)
	megabytes := float64(stop()) / 1e6
	slices.Sort(took)
	fmt.Printf("%-33s %6.1f ms %6.1f ms %9.0f MB/s\n", title,
		milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100]), megabytes/elapsed.Seconds())
	return nil
}

// download starts endless downloads. stop ends them, and returns the number of bytes
// received.
func download(ctx context.Context, urls []string, priority string) (stop func() (bytes int64)) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var bytes atomic.Int64
	for i := range demoDownloads {
		all.Go(func() {
			for ctx.Err() == nil {
				n, _ := get(ctx, urls[i%len(urls)]+"/archive", priority) // the last one is cut off
				bytes.Add(n)
			}
		})
	}
	return func() int64 {
		cancel()
		all.Wait()
		return bytes.Load()
	}
}

func get(ctx context.Context, url, priority string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Priority", priority)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.Copy(io.Discard, resp.Body)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
