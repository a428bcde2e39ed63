package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// Exit statuses of the commands that ask a server, which their help names.
const (
	exitNothing   = 1   // there is nothing of that kind, or nothing has changed
	exitTimeout   = 124 // of --timeout, as timeout(1) has it
	exitCancelled = 130 // of a task that was cancelled, as of a command that Ctrl-C has ended
)

const clientHelp = `

The server is the one whose socket is in ./stint-data, or what --server or
STINT_SERVER names: a directory, unix:PATH, or http://127.0.0.1:PORT. One that is
not there is tried for a second, or as long as STINT_PATIENCE says, as in 30s.`

// client is what the commands that ask a server have in common.
type client struct {
	*streams
	address string
	json    bool
}

// register defines the flags that all of them have.
func (c *client) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.address, "server", "", "ask the server at `ADDRESS`")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
	cmd.Flags().SortFlags = false
	cmd.Long += clientHelp
}

// The variables that say what no flag does.
const (
	serverEnv   = "STINT_SERVER"
	patienceEnv = "STINT_PATIENCE"
)

// patience is how long a server is tried to be reached, or to be followed by another.
func patience() (time.Duration, error) {
	d := seconds(time.Second)
	if env := os.Getenv(patienceEnv); env != "" {
		if err := d.Set(env); err != nil || d <= 0 {
			return 0, fmt.Errorf("%s=%s: give a time, as in 500ms or 30s", patienceEnv, env)
		}
	}
	return time.Duration(d), nil
}

// with calls do with the server. Ctrl-C ends what it waits for.
func (c *client) with(cmd *cobra.Command, do func(context.Context, *remote.Server) error) error {
	address := remote.DefaultDir
	if env := os.Getenv(serverEnv); env != "" {
		address = env
	}
	if c.address != "" {
		address = c.address
	}
	wait, err := patience()
	if err != nil {
		return err
	}
	server, err := remote.Open(address, wait)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err = do(ctx, server)
	if err == nil || ctx.Err() == nil {
		return errors.Join(remote.Explain(err, address), server.Close())
	}
	return &exitError{status: exitCancelled}
}

// print prints a value as JSON, on one line.
func (c *client) print(value any) error { return json.NewEncoder(c.out).Encode(value) }

// now is the time by which ages are shown.
func now() time.Time { return time.Now() } //nolint:forbidigo // people go by this clock

// operator is who gives an order, for the timeline of its tasks.
func operator() string {
	host, _ := os.Hostname()
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return host
}

// nothing ends a command that has found nothing to do.
func nothing(err error) error { return &exitError{status: exitNothing, err: err} }

// found turns the error of a task that is not there into its exit status.
func found(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return nothing(err)
	}
	return err
}
