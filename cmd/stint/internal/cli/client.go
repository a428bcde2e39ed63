package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// Exit statuses of the commands that use a server; their help lists them.
const (
	exitNothing   = 1                                     // nothing was found or changed
	exitTimeout   = proc.ExitTimeout                      // --timeout expired, as in timeout(1)
	exitCancelled = proc.ExitSignal + int(syscall.SIGINT) // the task was cancelled; as of a command ended by Ctrl-C
)

const clientHelp = `

The server is the one whose socket is in ./stint-data, or what --server or
STINT_SERVER names: a directory, the path of a socket, or http://127.0.0.1:PORT. An
http: address needs the server's token: --token-file or STINT_TOKEN_FILE names the
file, which is token in the server's directory. If no server is there, the command
retries for 1 s (STINT_PATIENCE=30s retries longer); if the server does not answer, the
command gives up after 30 s (STINT_CALL_TIMEOUT=2m waits longer).`

// client has the options that all commands share that use a server.
type client struct {
	*streams
	address   string
	tokenFile string
	json      bool
	fallback  string // the directory of the server if none is given; "" is [remote.DefaultDir]
}

// register defines the flags of all these commands, and --json.
func (c *client) register(cmd *cobra.Command) {
	c.registerServer(cmd)
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON")
}

// registerServer defines the flags of all these commands.
func (c *client) registerServer(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.address, "server", "", "ask the server at `ADDRESS`")
	cmd.Flags().StringVar(&c.tokenFile, "token-file", "", "send the token in `FILE` to an http: address")
	cmd.Flags().SortFlags = false
	cmd.Long += clientHelp
}

// Environment variables that replace flags.
const (
	serverEnv    = "STINT_SERVER"
	patienceEnv  = "STINT_PATIENCE"
	timeoutEnv   = "STINT_CALL_TIMEOUT"
	tokenFileEnv = "STINT_TOKEN_FILE"
)

// patience returns how long a client retries to reach a server, and a server to open its
// directory.
func patience() (time.Duration, error) { return durationOf(patienceEnv, time.Second) }

// durationOf returns the duration in a variable, or otherwise if the variable is empty.
func durationOf(variable string, otherwise time.Duration) (time.Duration, error) {
	d := seconds(otherwise)
	if env := os.Getenv(variable); env != "" {
		if err := d.Set(env); err != nil || d <= 0 {
			return 0, fmt.Errorf("%s=%s: give a time, as in 500ms or 30s", variable, env)
		}
	}
	return time.Duration(d), nil
}

// callTimeout is how long a client waits for the answer to a call.
const callTimeout = 30 * time.Second

// config returns the configuration of the connection, from flags and variables.
func (c *client) config() (remote.Config, error) {
	wait, err := patience()
	timeout, invalid := durationOf(timeoutEnv, callTimeout)
	tokenFile := cmp.Or(c.tokenFile, os.Getenv(tokenFileEnv))
	return remote.Config{Patience: wait, Timeout: timeout, TokenFile: tokenFile}, errors.Join(err, invalid)
}

// where returns the address of the server.
func (c *client) where() string {
	return cmp.Or(c.address, os.Getenv(serverEnv), c.fallback, remote.DefaultDir)
}

// with calls do with the server. Ctrl-C cancels its context; a second one ends the process.
func (c *client) with(cmd *cobra.Command, do func(context.Context, *remote.Server) error) error {
	address := c.where()
	cfg, err := c.config()
	if err != nil {
		return err
	}
	server, err := remote.Open(address, cfg)
	if err != nil {
		return err
	}
	if c.tokenFile != "" && !strings.Contains(address, "://") {
		err := fmt.Errorf("--token-file: %s needs no token, only an http: address in --server does", address)
		return errors.Join(err, server.Close())
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process, whatever blocks it
	err = do(ctx, server)
	if err == nil || ctx.Err() == nil {
		return errors.Join(c.explain(err, address), server.Close())
	}
	return &exitError{status: exitCancelled}
}

// explain returns err, an error of the server at an address, with a remedy.
func (c *client) explain(err error, address string) error {
	if !errors.Is(err, httpstore.ErrWrongToken) {
		return remote.Explain(err, address)
	}
	path, source := c.tokenFile, "--token-file"
	if path == "" {
		path, source = os.Getenv(tokenFileEnv), tokenFileEnv
	}
	return fmt.Errorf("the token in %s, which %s names, is not the token of the server at %s: name the file %s in that "+
		"server's directory (stint serve --dir)", path, source, address, serve.TokenName)
}

// print prints a value as JSON on one line, without escaping < > & in commands.
func (c *client) print(value any) error { return printJSON(c.out, value) }

func printJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// operator returns the name under which an order is recorded in the timeline of its
// tasks.
func operator() string {
	host, _ := os.Hostname()
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return host
}

// isPartial reports whether an error says that some groups do not answer; the result then has what the
// other groups returned.
func isPartial(err error) bool {
	_, ok := errors.AsType[*queue.PartialError](err)
	return ok
}

// missing returns the error of a list. If that is a [queue.PartialError], it says what the list lacks.
func missing(err error, what string) error {
	partial, ok := errors.AsType[*queue.PartialError](err)
	if !ok {
		return err
	}
	says := &queue.PartialError{Missing: slices.Clone(partial.Missing)}
	for i := range says.Missing {
		says.Missing[i].Reason += "; its " + what + " are missing"
	}
	return says
}

// partialHelp is in the help of lists, behind the exit status 125.
const partialHelp = `, also if a group of queues does not answer:
then what the other groups have is listed.`

// nothing returns the error of a command that has found nothing to do.
func nothing(err error) error { return &exitError{status: exitNothing, err: err} }

// found maps the error of a missing task to its exit status.
func found(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return nothing(err)
	}
	return err
}
