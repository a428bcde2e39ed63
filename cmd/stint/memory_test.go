//go:build linux

package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// mebibytes is the largest memory that a process has had resident.
func mebibytes(t *testing.T, pid int) int {
	t.Helper()
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(read(t, fmt.Sprintf("/proc/%d/status", pid)))
	kilobytes, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes >> 10
}

// Calls of a few megabytes with as many tasks as they have room for, many at a time, are
// refused, and take little memory of the server: one of them took 900 MiB.
func TestC6_CallsWithManyItems(t *testing.T) {
	s := serve(t)
	socket := filepath.Join(s.dir, "stint-data", "stint.sock")
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	const before, after = `{"tasks":[`, `{}]}`
	bodies := map[string][]byte{
		"many items":  []byte(before + strings.Repeat("{},", 970_000) + after),
		"much text":   []byte(before + `{"kind":"` + strings.Repeat("x", 3<<20) + `"},` + after),
		"many values": []byte(before + strings.Repeat(`{"after":[`+strings.Repeat("null,", 9000)+"null]},", 60) + after),
	}
	var calls sync.WaitGroup
	for range 10 {
		for name, body := range bodies {
			calls.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v2/submit",
					bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Stint-Client", "test")
				res, err := client.Do(req)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				defer res.Body.Close()
				if text, err := io.ReadAll(res.Body); res.StatusCode < 400 || res.StatusCode > 503 || err != nil {
					t.Errorf("%s: %d %s, %v", name, res.StatusCode, text, err)
				}
			})
		}
	}
	calls.Wait()
	const most = 400 // twice the bound of package server, for what is garbage
	if got := mebibytes(t, s.cmd.Process.Pid); got > most {
		t.Errorf("the server has had %d MiB, want %d at most", got, most)
	} else {
		t.Logf("the server has had %d MiB", got)
	}
	if r := s.stint("stats"); r.status != 0 {
		t.Errorf("afterwards: %+v", r)
	}
	s.stop()
}
