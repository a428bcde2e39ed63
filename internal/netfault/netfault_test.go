package netfault_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/netfault"
)

// echo starts a server that sends back what it receives, and returns a proxy to it.
func echo(t *testing.T) *netfault.Proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := netfault.New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return p
}

func dial(t *testing.T, p *netfault.Proxy) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// wantEcho checks that a text passes, and comes back.
func wantEcho(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("%q comes back as %q, %v", text, got, err)
	}
}

// TestC11_FaultsKeepTheBytes: a proxy that delays and splits changes no byte, and passes on
// the end.
func TestC11_FaultsKeepTheBytes(t *testing.T) {
	p := echo(t)
	p.Set(netfault.Fault{Delay: time.Millisecond, Piece: 100})
	c := dial(t, p)
	text := bytes.Repeat([]byte("0123456789"), 2000)
	var sending sync.WaitGroup
	sending.Go(func() {
		if _, err := c.Write(text); err != nil || c.CloseWrite() != nil {
			t.Error(err)
		}
	})
	got, err := io.ReadAll(c)
	sending.Wait()
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d of %d bytes come back, %v", len(got), len(text), err)
	}
}

// TestC11_Faults: what is stalled passes when the fault ends; a dead connection stays open,
// and only that one is dead; a connection that is cut ends; one that is refused ends at once.
func TestC11_Faults(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	wantEcho(t, c, "before")
	p.Set(netfault.Fault{Stall: true})
	if _, err := io.WriteString(c, "stalled"); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, c)
	p.Set(netfault.Fault{})
	wantEcho(t, c, "")
	got := make([]byte, len("stalled"))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "stalled" {
		t.Fatalf("after the stall, %q comes back, %v", got, err)
	}
	p.Deaden()
	if _, err := io.WriteString(c, "dead"); err != nil {
		t.Fatal(err)
	}
	other := dial(t, p)
	wantEcho(t, other, "another connection")
	wantNothing(t, c)
	p.Cut()
	for _, c := range []net.Conn{c, other} {
		if n, err := c.Read(got); n > 0 || err == nil {
			t.Errorf("a connection that was cut brings %q, %v", got[:n], err)
		}
	}
	p.Set(netfault.Fault{Refuse: true})
	if n, err := dial(t, p).Read(got); n > 0 || err == nil {
		t.Errorf("a connection that is refused brings %q, %v", got[:n], err)
	}
}

// wantNothing checks that a connection brings nothing, and is open.
func wantNothing(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a stalled connection brings %d bytes, %v", n, err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// Bytes to the server are counted and signalled, those of answers are not, and new connections
// go where the proxy points to.
func TestProxy_Counts(t *testing.T) {
	p := echo(t)
	c := dial(t, p)
	wantEcho(t, c, "12345")
	if n := p.Passed(); n != 5 {
		t.Errorf("%d bytes have passed, want 5", n)
	}
	<-p.StallAfter(0)
	p.Set(netfault.Fault{Piece: 1})
	alarm := p.StallAfter(3)
	wantEcho(t, c, "67")
	select {
	case <-alarm:
		t.Error("2 bytes have signalled 3")
	default:
	}
	if _, err := c.Write([]byte("890")); err != nil {
		t.Fatal(err)
	}
	<-alarm
	if n := p.Passed(); n != 8 {
		t.Errorf("%d bytes have passed before the stall, want 8", n)
	}
	p.Set(netfault.Fault{})
	if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
		t.Error(err)
	}
	other := echo(t)
	p.Retarget(other.Addr())
	wantEcho(t, dial(t, p), "there")
	if n := other.Passed(); n != 5 {
		t.Errorf("%d bytes have passed to the other server, want 5", n)
	}
}
