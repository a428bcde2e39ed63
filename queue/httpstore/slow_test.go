package httpstore_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// A client that sends a call too slowly, or does not read the answer, is disconnected and
// holds no resources.
func TestC6_SlowClients(t *testing.T) {
	const begun, promised = " HTTP/1.1\r\nHost: localhost\r\nStint-Client: slow\r\n", "Content-Length: 100\r\n\r\n"
	const call = "POST /v2/claim" + begun + "Content-Type: application/json\r\n" + promised
	for what, sends := range map[string]string{
		"says nothing":               "",
		"sends half a header":        "GET /v2/stats" + begun,
		"sends half a body":          call + "{",
		"sends no body":              call,
		"sends a body not asked for": "GET /v2/stats" + begun + promised + "{",
		"takes no answer":            "GET /v2/stats" + begun + "\r\n",
		"takes no problem":           "GET /v9/stats" + begun + "\r\n",
		"takes nothing of a stream":  "GET /v2/watch" + begun + "\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{t: t, l: &listener{conns: make(chan net.Conn), closed: make(chan struct{})}}
			s := server.New(memstore.New(memstore.Config{}), server.Config{Timeout: 5 * time.Second})
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error)
			go func() { served <- s.Serve(ctx, n.l) }()
			conn, err := n.dial(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, sends) }()
			time.Sleep(time.Minute) // and reads nothing
			if _, err := io.WriteString(conn, "x"); err == nil {
				t.Errorf("a client that %s is there after %s", what, time.Since(began))
			}
			stop()
			if err := <-served; err != nil {
				t.Errorf("Serve returns %v", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("a client that %s holds up the end by %s", what, took-time.Minute)
			}
		})
	}
}
