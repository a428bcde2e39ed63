package shared

import (
	"io"
	"net"
	"path/filepath"
	"sync"

	"github.com/stintgo/stint"
)

// daemon gives out tokens over a Unix socket, to the highest tier that waits and
// in the order of arrival. A client sends a tier, from 0, to get a token, is sent
// a byte when it has one, and sends 255 to release it. A client whose connection ends
// releases its token too.
type daemon struct {
	mu    sync.Mutex
	free  int
	waits [stint.Tiers][]*daemonClient
}

type daemonClient struct {
	conn           net.Conn
	waiting, holds bool // guarded by the daemon's lock
}

const release = 255

// startDaemon starts the daemon in a process of its own.
func startDaemon(t *turn) (address string, err error) {
	o := t.order
	o.Does, o.Address = doesDaemon, filepath.Join(t.dir, "socket")
	_, err = t.start(o)
	return o.Address, err
}

// serveDaemon returns when the daemon can be reached; the daemon continues to the end of the process.
func serveDaemon(address string, slots int) error {
	listener, err := net.Listen("unix", address) //nolint:noctx // it does not wait
	if err != nil {
		return err
	}
	d := &daemon{free: slots}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go d.serve(&daemonClient{conn: conn})
		}
	}()
	return nil
}

func (d *daemon) serve(c *daemonClient) {
	message := make([]byte, 1)
	for {
		if _, err := io.ReadFull(c.conn, message); err != nil {
			break
		}
		if message[0] == release {
			d.release(c)
		} else {
			d.acquire(c, int(message[0]))
		}
	}
	d.mu.Lock()
	c.waiting = false
	d.mu.Unlock()
	d.release(c)
	_ = c.conn.Close()
}

func (d *daemon) acquire(c *daemonClient, tier int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.waiting = true
	d.waits[tier] = append(d.waits[tier], c)
	d.grant()
}

func (d *daemon) release(c *daemonClient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.holds {
		c.holds = false
		d.free++
		d.grant()
	}
}

// grant grants the free tokens.
func (d *daemon) grant() {
	for tier := stint.Tiers - 1; tier >= 0 && d.free > 0; {
		if len(d.waits[tier]) == 0 {
			tier--
			continue
		}
		c := d.waits[tier][0]
		d.waits[tier] = d.waits[tier][1:]
		if c.waiting {
			c.waiting, c.holds = false, true
			d.free--
			_, _ = c.conn.Write([]byte{1}) // if it has gone, its token comes back
		}
	}
}

// daemonAddress is where the daemon is.
type daemonAddress string

func openDaemon(address string, _, _ int) (limit, error) { return daemonAddress(address), nil }

func (a daemonAddress) caller() (caller, error) {
	conn, err := net.Dial("unix", string(a)) //nolint:noctx // it does not wait
	return daemonCaller{conn}, err
}

type daemonCaller struct{ conn net.Conn }

func (c daemonCaller) acquire(tier stint.Priority) error {
	if _, err := c.conn.Write([]byte{byte(tier - stint.Lowest)}); err != nil {
		return err
	}
	_, err := io.ReadFull(c.conn, make([]byte, 1))
	return err
}

func (c daemonCaller) release() error {
	_, err := c.conn.Write([]byte{release})
	return err
}
