package pgstore

import (
	"context"
	"net"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	// dialWithin is how long a connection to the server may take. A host that is gone does not
	// answer.
	dialWithin = 3 * time.Second
	// closeWithin is how long the end of a connection may take.
	closeWithin = 2 * time.Second
)

// dial connects to the server. A silent connection is probed after 5 s, and is broken 6 s
// later if its other end does not answer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	const idle, interval, count = 5 * time.Second, 2 * time.Second, 3
	d := net.Dialer{
		Timeout:         dialWithin,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: count},
	}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}

// conn is a connection to the server that is closed soon. After a call that was given up,
// pgx waits up to 15 s for the end of the connection, which counts among those of the pool
// meanwhile. If all of them are dead, because a firewall has forgotten them or the network is
// cut, the lease of the leader could not be renewed for these 15 s after the network is back.
type conn struct{ net.Conn }

// SetDeadline is as [net.Conn] says, except for a deadline after closeWithin: pgx sets one only
// to close the connection. To end a call, it sets one that has passed.
func (c conn) SetDeadline(t time.Time) error {
	if latest := clock.Now().Add(closeWithin); t.After(latest) {
		t = latest
	}
	return c.Conn.SetDeadline(t)
}
