package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

const secret = "J5ZX2QBN6TRWLKMA7C3YEPDUVH"

// TestC6_Tokens: calls to a TCP address need the server's token, calls by a Unix socket
// do not.
func TestC6_Tokens(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{Token: secret})
	defer s.Close()
	for header, want := range map[string]int{
		"Bearer " + secret: http.StatusOK, "bearer " + secret: http.StatusOK,
		"": 401, "Bearer": 401, "Bearer ": 401, secret: 401, "Basic " + secret: 401, "Bearer  " + secret: 401,
		"Bearer " + secret[1:]: 401, "Bearer " + secret + "x": 401, "Bearer " + secret + " x": 401,
	} {
		r := request("GET", wire.Stats, "")
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want || (w.Header().Get("WWW-Authenticate") == "Bearer") != (want == 401) {
			t.Errorf("with %q: %d %v, want %d", header, w.Code, w.Header(), want)
		}
	}
	for path, method := range map[string]string{
		wire.Submit: "POST", wire.Claim: "POST", wire.Command: "POST", wire.Find: "POST", wire.Log: "GET", wire.Watch: "GET",
		wire.Ready: "GET", "/": "GET",
	} {
		if status, code := answered(t, s, request(method, path, "{}")); status != 401 || code != "token" {
			t.Errorf("%s %s without a token is answered %d %s", method, path, status, code)
		}
	}
	r := request("GET", wire.Stats, "")
	r.Header.Set("Authorization", "Bearer "+secret+"x")
	if status, code := answered(t, s, r); status != 401 || code != "wrong_token" {
		t.Errorf("with a wrong token: %d %s", status, code)
	}
	r = request("GET", wire.Stats, "")
	r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.UnixAddr{Name: "s", Net: "unix"}))
	if status, code := answered(t, s, r); status != http.StatusOK {
		t.Errorf("by a socket, without a token: %d %s", status, code)
	}
}

// TestC6_ClientsSendTheirToken: a client sends its token to a TCP address, but not by a
// Unix socket.
func TestC6_ClientsSendTheirToken(t *testing.T) {
	sent := make(chan string, 1)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", wire.JSON)
		_, _ = w.Write([]byte("{}"))
	}))
	defer hs.Close()
	socket := t.TempDir() + "/s"
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(l, hs.Config.Handler) }() //nolint:gosec // ends with the listener
	defer l.Close()
	for address, want := range map[string]string{hs.URL: "Bearer " + secret, "unix:" + socket: ""} {
		client, err := httpstore.Open(address, httpstore.Config{Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.Settings(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-sent; got != want {
			t.Errorf("%s gets the header %q, want %q", address, got, want)
		}
	}
}
