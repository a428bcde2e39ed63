package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/gate"
	"github.com/stintgo/stint/cmd/stint/internal/jobcount"
	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/isolate"
)

const serveLong = `Keep tasks in a directory, and run those that are commands of stint submit.

Submitted tasks and their order survive kill -9 and power failures; a task that was
running then begins again. Each command runs in a process group of its own, whose
processes all end with the attempt, or with the server.

Other processes reach the server by the socket stint.sock in the directory, which
only its owner may use, and with --listen by an address of this machine. Calls to
the address need the token in the file token of the directory, which the first
start with --listen creates: a client that has it can run commands as the server's user.
The token is sent in clear text, and a client cannot verify the server at an address:
prefer the socket, and from other machines a tunnel to it (ssh -L).

After the first SIGINT, SIGTERM or SIGHUP the server starts nothing more and waits for
running commands; after --grace they get SIGTERM, and then SIGKILL. A second signal
kills them at once. Interrupted commands have not failed: they begin again at the next
start.

With --uploads, the server receives files at an address of this machine, by tus 1.0.0, the
IETF draft for resumable uploads, and plain PUT: see stint upload. Calls need the token in the file
uploads-token of --dir, in the header Authorization: Bearer TOKEN; it allows nothing else. A page
at / of that address uploads from a browser; it asks for the token.

With --store, tasks are kept by PostgreSQL or Redis instead, and logs and the socket in
the directory. Servers with the same store, on any hosts, share the tasks: all of them
run tasks and answer their clients. One leads and decides, so limits hold over all of
them; another one takes over when it ends, or has not reached the database for 2 s: see
stint nodes. Set a URL with a password in STINT_STORE, because other users can see the
flags of a process.

If another server uses the directory or the address, stint serve retries for 1 s, since
that server may have been killed a moment ago; if the database cannot be reached, for 5 s
(STINT_PATIENCE=30s retries both longer). A directory that another user owns or may
write to is refused.

Exit status: 0 after the first signal; 125 for errors; 128 and the signal's number
after a second signal.`

const serveExamples = `  # two at a time, in ./stint-data
  stint serve -j2

  # for two queues, with at most 1 GiB of memory for each command
  stint serve --queue default --queue nightly --memory 1G`

// serveFlags are the flags of stint serve, unparsed.
type serveFlags struct {
	dir, store              string
	listen, jobs            string
	nodeListen, nodeAddress string
	queues                  []string
	groups, groupStores     []string
	memory, output, logsMax string
	minFree                 string
	grace, killAfter        time.Duration

	uploads, uploadsListen, uploadsRate string
	uploadsMax, uploadsQuota, then      string
	uploadsJobs                         int
	uploadsSet                          bool // a flag --uploads-… was given
	minFreeSet                          bool // --min-free was given
}

// defaultGrace is how long a server that was signaled to end waits for commands.
const defaultGrace = 10 * time.Second

func newServe(s *streams) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve [flags]", Short: "Keep tasks in a directory and run them", Long: serveLong,
		Example: serveExamples, Args: nothingElse,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Flags().Visit(func(flag *pflag.Flag) {
				f.uploadsSet = f.uploadsSet || strings.HasPrefix(flag.Name, "uploads-")
			})
			f.minFreeSet = cmd.Flags().Changed("min-free")
			return runServe(&f, s)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *serveFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.dir, "dir", remote.DefaultDir, "keep everything in `DIR`, which one server at a time can use")
	flags.StringVar(&f.store, "store", "",
		"keep tasks at `URL`: postgres://… or redis://… (STINT_STORE)")
	flags.StringArrayVar(&f.groups, "group", nil,
		"with --store, give queues a leader of their own: `NAME=QUEUE[,QUEUE...]`; the same at all servers")
	flags.StringArrayVar(&f.groupStores, "group-store", nil, "keep the tasks of a group elsewhere: `NAME=URL`")
	flags.StringVarP(&f.jobs, "jobs", "j", "", "run `N` commands at once; 50%, +2 or -1 (default: one per CPU)")
	flags.StringArrayVar(&f.queues, "queue", []string{"default"}, "run tasks of `QUEUE`; may be given several times")
	flags.StringVar(&f.listen, "listen", "", "answer at `ADDRESS` too, as in 127.0.0.1:7117")
	flags.StringVar(&f.nodeListen, "node-listen", "",
		"with --store, answer the other servers at `ADDRESS` (default: a free port of the interface to the database)")
	flags.StringVar(&f.nodeAddress, "node-address", "",
		"with --store, the `ADDRESS` by which the other servers reach this one, if it differs")
	flags.StringVar(&f.memory, "memory", "", "kill a command that has more than `SIZE` of memory")
	flags.StringVar(&f.output, "output", fmt.Sprintf("%dM", isolate.DefaultOutput>>20),
		"keep `SIZE` of what an attempt writes: its beginning and its end")
	flags.StringVar(&f.logsMax, "logs", fmt.Sprintf("%dG", serve.DefaultLogsMax>>30),
		"keep `SIZE` of what all commands have written; the oldest goes first")
	flags.StringVar(&f.minFree, "min-free", fmt.Sprintf("%dM", filestore.DefaultMinFree>>20),
		"refuse tasks while the disk has less than `SIZE` left")
	secondsVar(flags, &f.grace, "grace", defaultGrace, "after the first signal, wait `TIME` for running commands")
	secondsVar(flags, &f.killAfter, "kill-after", defaultKillAfter, "`TIME` from SIGTERM to SIGKILL for a command")
	flags.StringVar(&f.uploads, "uploads", "", "receive uploads into `DIR`")
	flags.StringVar(&f.uploadsListen, "uploads-listen", "127.0.0.1:7118", "receive them at `ADDRESS`")
	flags.StringVar(&f.uploadsRate, "uploads-rate", "", "receive at most `RATE` of all uploads together, as in 50MiB/s")
	flags.IntVar(&f.uploadsJobs, "uploads-jobs", defaultReceive, "receive `N` requests at once; others wait")
	flags.StringVar(&f.uploadsMax, "uploads-max-size", "", "refuse files of more than `SIZE`")
	flags.StringVar(&f.uploadsQuota, "uploads-quota", "", "refuse uploads beyond `SIZE` for all unfinished files together")
	flags.StringVar(&f.then, "then", "",
		"for each received file, submit `COMMAND`, run by sh -c in this directory with the file's path as $1")
}

// defaultReceive is how many uploads are received at once. One takes 256 KiB of memory.
const defaultReceive = 64

// uploadsConfig turns the flags about uploads into their configuration.
func (f *serveFlags) uploadsConfig() (u serve.Uploads, err error) {
	if f.uploads == "" {
		if f.then != "" || f.uploadsSet {
			err = errors.New("--then and --uploads-… are for received files: give --uploads DIR, too")
		}
		return u, err
	}
	u = serve.Uploads{Dir: f.uploads, Listen: f.uploadsListen, Jobs: f.uploadsJobs, Then: f.then}
	var errs [4]error
	if u.Jobs < 1 {
		errs[0] = errors.New("--uploads-jobs must be above 0")
	}
	u.Rate, errs[1] = bytesPerSecond("uploads-rate", f.uploadsRate)
	if f.uploadsMax != "" {
		u.MaxSize, errs[2] = parseSize("uploads-max-size", f.uploadsMax)
	}
	if f.uploadsQuota != "" {
		u.Quota, errs[3] = parseSize("uploads-quota", f.uploadsQuota)
	}
	return u, errors.Join(errs[:]...)
}

// bytesPerSecond parses the rate of a flag; 0 means no limit.
func bytesPerSecond(flag, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	if startsNothing(text) {
		return 0, fmt.Errorf("--%s %s lets no byte pass: give more, as in 5MiB/s, or leave it out for no limit", flag, text)
	}
	rate, err := stint.ParseRate(text)
	if err != nil {
		return 0, fmt.Errorf("--%s: %w; a token is a byte: write it as in 5MiB/s, up to 16GiB/s", flag, err)
	}
	return rate, nil
}

// parseSize parses the size of a flag, which is above 0.
func parseSize(flag, text string) (int64, error) {
	size, err := gate.ParseSize(text)
	if err == nil && size == 0 {
		return 0, fmt.Errorf("--%s %s: give more than 0, as in 500M", flag, text)
	}
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", flag, err)
	}
	return size, nil
}

// config turns the flags into a server. It reports every problem that it finds.
func (f *serveFlags) config(s *streams) (serve.Config, error) {
	var errs [13]error
	if f.store == "" { // not the default of the flag, which the help shows: the URL may have a password
		var set bool
		if f.store, set = os.LookupEnv(storeEnv); set && f.store == "" {
			errs[11] = errors.New("STINT_STORE is empty: give it the URL of a database, or unset it to keep tasks in --dir")
		}
	}
	cfg := serve.Config{
		Dir: f.dir, Store: f.store, Listen: f.listen, NodeListen: f.nodeListen, NodeAddress: f.nodeAddress,
		Queues: f.queues, Grace: f.grace,
		Command: isolate.Config{Grace: f.killAfter},
		Logger:  slog.New(slog.NewTextHandler(s.err, nil)),
	}
	cfg.ParseJobs = jobsParser()
	cfg.Jobs, cfg.JobsNote, errs[0] = cfg.ParseJobs(orCPUs(f.jobs))
	if f.memory != "" {
		cfg.Command.Memory, errs[1] = parseSize("memory", f.memory)
	}
	cfg.Command.Output, errs[2] = parseSize("output", f.output)
	cfg.LogsMax, errs[3] = parseSize("logs", f.logsMax)
	cfg.MinFree, errs[4] = parseSize("min-free", f.minFree)
	errs[5] = errors.Join(aboveZero("grace", f.grace), aboveZero("kill-after", f.killAfter))
	errs[6] = cfg.Command.Validate()
	cfg.Patience, errs[7] = patience()
	cfg.Uploads, errs[8] = f.uploadsConfig()
	cfg.Groups, errs[9] = parseGroups(f.groups, f.groupStores, f.store)
	if f.store == "" && f.nodeListen+f.nodeAddress != "" {
		errs[10] = errors.New("--node-listen and --node-address are for servers that share a store: give --store, too")
	}
	if f.store != "" && f.minFreeSet {
		errs[12] = errors.New("--min-free is for the disk of --dir, and --store keeps tasks elsewhere: leave it out")
	}
	return cfg, errors.Join(errs[:]...)
}

// jobsParser returns what parses how many commands run at once, under the limits of the system as they
// are now, before any runs. If the number must be lower than asked for, note says why.
func jobsParser() func(text string) (n int, note string, err error) {
	m := jobcount.Machine{CPUs: runtime.GOMAXPROCS(0), Most: min(filesJobs(), roomJobs(proc.Room()))}
	return func(text string) (n int, note string, err error) {
		n, err = jobcount.Parse(text, m)
		if err != nil || jobcount.Fits(text, m) {
			return n, "", err
		}
		why := "that is the most for one process"
		if n < mostThreads {
			why = "its limits on open files and on processes allow no more; raise those (ulimit -n, ulimit -u, pids.max of " +
				"its control group) and start the server again"
		}
		return n, fmt.Sprintf("not %s commands at once but %d: %s", text, n, why), nil
	}
}

func orCPUs(jobs string) string {
	if jobs == "" {
		return "100%"
	}
	return jobs
}

// storeEnv is the environment variable that replaces --store.
const storeEnv = "STINT_STORE"

// runServe is stint serve.
func runServe(f *serveFlags, s *streams) error {
	cfg, err := f.config(s)
	if err != nil {
		return err
	}
	_ = os.Unsetenv(storeEnv) // which cannot fail: commands get the environment, and the URL may have a password
	cfg.Ready = func(addresses []string) {
		for _, address := range addresses {
			printTo(s.out, "serving %s\n", address)
		}
		if cfg.Uploads.Dir != "" {
			printTo(s.err, "stint: uploads to the last address need the token in %s; / is a page for browsers\n",
				filepath.Join(cfg.Dir, serve.UploadsTokenName))
		}
		if cfg.Listen != "" {
			printTo(s.err, "stint: every process that has the token in %s can run commands as %s at that address\n",
				filepath.Join(cfg.Dir, serve.TokenName), operator())
		}
		printTo(s.err, "stint: %s at once; stop with Ctrl-C\n", view.Count(cfg.Jobs, "command"))
	}
	end := newEnding(func(sig os.Signal) {
		printTo(s.err, "stint: %v: waiting up to %s for what runs; again to stop at once\n", sig, cfg.Grace)
	})
	err = serve.Run(end.soon, end.now, cfg)
	if errors.Is(err, serve.ErrForced) {
		printTo(s.err, "stint: %v\n", err)
		return dieBy(<-end.last)
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// ending holds the contexts that end a server: soon ends at the first signal, now at the
// second.
type ending struct {
	soon, now context.Context     //nolint:containedctx // states of the process, not of a call
	last      chan syscall.Signal // the second signal
}

// newEnding waits for signals. It calls first with the first one, after soon has ended, in a
// goroutine: first may wait for a reader of its message.
func newEnding(first func(os.Signal)) *ending {
	soon, stop := context.WithCancel(context.Background())
	now, kill := context.WithCancel(context.Background())
	e := &ending{soon, now, make(chan syscall.Signal, 1)}
	const ahead = 2
	signals := make(chan os.Signal, ahead)
	notifyEnd(signals)
	go func() { // until the process ends
		one := <-signals
		stop()
		go first(one)
		sig, _ := (<-signals).(syscall.Signal)
		e.last <- sig
		kill()
	}()
	return e
}

// notifyEnd passes on the signals that end a server. Signals ignored at the start, as by
// nohup, stay ignored. Writing to a broken pipe is an error and does not end the server.
func notifyEnd(to chan os.Signal) {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(to, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
