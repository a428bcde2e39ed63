package cli

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/cmd/stint/internal/upload"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/bearer"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/s3"
)

const uploadLong = `Upload files to a server that speaks tus 1.0.0, such as stint serve --uploads, and wait
until they are there. Each argument is a file, a directory, which stands for all files
below it but not for symbolic links, a pattern in quotes if there is no such file, or - for
standard input, with --name. --to s3://BUCKET/PREFIX uploads to a bucket of an S3 server
instead, as PREFIX/NAME; two files of one NAME are refused.

Each upload is a durable task in --dir. The same command, given again after Ctrl-C, kill -9
or a power failure, continues interrupted uploads, sends nothing again that the server
has, and skips files that were uploaded within the last day; a file that has changed is
sent again, and with --again every file. Unfinished uploads of other calls with the same
--dir continue as well, except standard input.

While it runs, stint transfers shows the uploads from another terminal, and with
--server DIR, pause, resume, cancel, retry, why and edit work on them as on all tasks: on
one by its ID, on all by --kind stint.upload. Calls with the same --dir share -j and --rate
of the first one. Those with standard input or AWS keys in the environment need a --dir
each.

Tokens and passwords must not be in arguments, which other users can see: --token-file
sends the token in a file, which each request reads, as Authorization: Bearer, and
--header-env NAME=VARIABLE sends a header with the value of an environment variable. For
S3, the keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from a profile of
~/.aws/credentials.

Exit status: 0 if all files have been sent, now or within the last day; the number of files
that failed or were cancelled, and of directories that cannot be read, up to 100, 101 for
more; 125 for errors; 130 if Ctrl-C ended it, 143 if SIGTERM did.`

const uploadExamples = `  stint upload film.mkv --to https://example.com/files/
  stint upload ./photos '*.pdf' -j4 --rate 5MiB/s --to http://127.0.0.1:7118/files/ \
    --token-file stint-data/uploads-token
  stint upload film.mkv --to s3://films/new --endpoint https://s3.example.com --lanes 4
  tar c project | stint upload - --name project.tar --to https://example.com/files/`

// uploadFlags are the flags of stint upload, unparsed.
type uploadFlags struct {
	*streams
	to, dir, from, tokenFile    string
	name, rate, chunk, progress string
	tier, key                   string
	endpoint, region, profile   string
	jobs, lanes, retries        int
	verify, again               bool
	metadata, headers           map[string]string
}

// uploadDir is the directory of uploads if none is given; see the XDG Base Directory
// Specification.
func uploadDir() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return remote.DefaultDir
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "stint", "uploads")
}

func newUpload(s *streams) *cobra.Command {
	f := uploadFlags{streams: s}
	cmd := &cobra.Command{
		Use: "upload [flags] FILE... --to URL", Short: "Upload files, also after interruptions", Long: uploadLong,
		Example: uploadExamples, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args) },
	}
	f.register(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tiers(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *uploadFlags) register(flags *pflag.FlagSet) {
	const jobs, retries = 3, transfer.DefaultRetries
	flags.SortFlags = false
	flags.StringVar(&f.to, "to", "",
		"upload to the tus server at `URL`, or to s3://BUCKET/PREFIX (STINT_UPLOAD_TO)")
	flags.StringVar(&f.endpoint, "endpoint", "",
		"the S3 server is at `URL` (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; default: AWS)")
	flags.StringVar(&f.region, "region", "",
		"the S3 bucket is in `REGION` (AWS_REGION, AWS_DEFAULT_REGION; default: us-east-1)")
	flags.StringVar(&f.profile, "profile", "", "use the S3 keys of the profile `NAME` (AWS_PROFILE)")
	flags.StringVar(&f.from, "from", "", "upload the files that `FILE` names, one a line, too; - is standard input")
	flags.IntVarP(&f.jobs, "jobs", "j", jobs, "upload `N` files at once")
	flags.StringVar(&f.rate, "rate", "", "send at most `RATE` of all files together, as in 5MiB/s")
	flags.StringVar(&f.tier, "tier", "", "`TIER`: lowest … highest or -3 … 3 (default: normal)")
	flags.StringVar(&f.key, "key", "", "`KEY` of the files: keys take turns")
	flags.IntVar(&f.lanes, "lanes", 1, "send `N` parts of a file at once, if the server can join them")
	flags.StringVar(&f.chunk, "chunk", "", fmt.Sprintf("send `SIZE` in each request, which is what an interruption "+
		"costs at most (default: %dM; %dM of standard input)", transfer.DefaultChunkSize>>20, transfer.DefaultChunkSize>>21))
	flags.BoolVar(&f.verify, "verify", false, "have the server compare the SHA-256 of each file, which is read once more")
	flags.IntVar(&f.retries, "retries", retries, "try a file again up to `N` times, after the tries for each request")
	flags.BoolVar(&f.again, "again", false, "also send files that were sent within the last day")
	flags.StringVar(&f.name, "name", "", "call the file `NAME` at the server; for one file")
	pairsVar(flags, &f.metadata, "metadata", "send the metadata `NAME=VALUE` to the server")
	pairsVar(flags, &f.headers, "header-env", "send a header with the value of a variable: `NAME=VARIABLE`")
	flags.StringVar(&f.tokenFile, "token-file", "", "send the token in `FILE` as Authorization: Bearer")
	flags.StringVar(&f.dir, "dir", uploadDir(), "keep the tasks in `DIR`")
	flags.StringVar(&f.progress, "progress", string(progress.ModeAuto),
		"show progress as `MODE`: auto, bar, plain, json or none")
}

// run is stint upload.
func (f *uploadFlags) run(args []string) error {
	cfg, err := f.config(args)
	if err != nil {
		return err
	}
	ended := make(chan syscall.Signal, 1)
	end := newEnding(func(sig os.Signal) {
		by, _ := sig.(syscall.Signal)
		ended <- by
	})
	if cfg.Serve.Transfer.Input != nil {
		in, stop, err := input.Interruptible(end.soon, f.in)
		if err != nil {
			return err
		}
		defer stop()
		cfg.Serve.Transfer.Input = input.DelayEOF(end.soon, in)
	}
	sum, err := upload.Run(end.soon, end.now, cfg)
	switch {
	case errors.Is(err, serve.ErrForced):
		printTo(f.err, "stint: stopped at once: the same command continues, but for standard input\n")
		return dieBy(<-end.last)
	case err != nil:
		return fmt.Errorf("upload: %w", err)
	}
	cancelled := ""
	if sum.Cancelled > 0 {
		cancelled = fmt.Sprintf(", %d cancelled", sum.Cancelled)
	}
	printTo(f.err, "stint: %d sent (%s), %d skipped, %d failed%s\n",
		sum.Sent, upload.Size(sum.Bytes), sum.Skipped, sum.Failed, cancelled)
	if sum.Left > 0 {
		printTo(f.err, "stint: %d unfinished: the same command continues, but for standard input; "+
			"while it runs, stint cancel --kind stint.upload --server %s ends what is unfinished\n", sum.Left, f.dir)
		return &exitError{status: proc.ExitSignal + int(<-ended)} // some are left after a signal alone
	}
	if unsent := sum.Failed + sum.Cancelled; unsent > 0 {
		return &exitError{status: min(unsent, 101)}
	}
	return nil
}

// config turns the flags and arguments into uploads. It reports every problem that it finds.
func (f *uploadFlags) config(args []string) (cfg upload.Config, err error) {
	var errs [10]error
	var chunk int64 // 0 is the default
	if f.chunk != "" {
		chunk, errs[0] = parseSize("chunk", f.chunk)
	}
	// Not the default of the flag, which the help shows: the URL may have a password.
	f.to = cmp.Or(f.to, os.Getenv("STINT_UPLOAD_TO"))
	rate, err := bytesPerSecond("rate", f.rate)
	errs[1] = err
	if f.to == "" {
		errs[2] = errors.New("say where to: --to URL")
	}
	if f.jobs < 1 {
		errs[3] = fmt.Errorf("-j %d would send nothing: give 1 or more", f.jobs)
	}
	if f.lanes < 1 || f.lanes > transfer.MaxLanes {
		errs[9] = fmt.Errorf("--lanes %d: give a number from 1 to %d", f.lanes, transfer.MaxLanes)
	}
	cfg.Options.Key = f.key
	cfg.Options.MaxAttempts, errs[8] = attempts(f.retries)
	if f.tier != "" {
		cfg.Options.Tier, errs[4] = parseTier("tier", f.tier)
	}
	cfg.Again = f.again
	cfg.Show, errs[5] = f.show()
	errs[6] = f.awaitToken()
	files, unread, err := f.files(args)
	errs[7] = err
	cfg.Unsent = unread
	if err := errors.Join(errs[:]...); err != nil {
		return cfg, err
	}
	if f.toS3() {
		if err := ownNames(files); err != nil {
			return cfg, err
		}
		f.awsEnvironment()
	}
	for _, path := range files {
		cfg.Uploads = append(cfg.Uploads, transfer.Upload{
			Path: path, To: f.to, Name: f.name, ChunkSize: chunk, Lanes: f.lanes, Verify: f.verify, Metadata: f.metadata,
			HeaderEnv: f.headers, TokenFile: f.tokenFile, Endpoint: f.endpoint, Region: f.region, Profile: f.profile,
		})
	}
	cfg.Serve, cfg.Remote = f.server(rate)
	for i := range cfg.Uploads {
		if u := &cfg.Uploads[i]; u.Path == transfer.Input {
			cfg.Own, u.InputName = true, rand.Text()
			cfg.Serve.Transfer.Input, cfg.Serve.Transfer.InputName = f.in, u.InputName
		}
	}
	cfg.Own = cfg.Own || f.toS3() && f.profile == "" && os.Getenv("AWS_ACCESS_KEY_ID") != ""
	return cfg, nil
}

// toS3 reports whether the uploads go to a bucket.
func (f *uploadFlags) toS3() bool {
	const scheme = "s3://" // in capitals, too: see RFC 3986, section 3.1
	return len(f.to) >= len(scheme) && strings.EqualFold(f.to[:len(scheme)], scheme)
}

// ownNames checks that no two files would become the same object of a bucket, where the last would replace
// the others. A tus server gives such files different names.
func ownNames(files []string) error {
	seen := make(map[string]string, len(files))
	for _, path := range files {
		name := filepath.Base(path)
		if other, twice := seen[name]; twice {
			return fmt.Errorf("%s and %s would be the same object: send them by separate calls, with --name or another --to",
				view.Plain(other), view.Plain(path))
		}
		seen[name] = path
	}
	return nil
}

// awsEnvironment sets the flags that were not given from the variables that the tools of AWS use.
// Keys are not among them: each attempt reads those itself, so that the store does not have them.
func (f *uploadFlags) awsEnvironment() {
	f.endpoint = cmp.Or(f.endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	f.region = cmp.Or(f.region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" { // keys in the environment come first
		f.profile = cmp.Or(f.profile, os.Getenv("AWS_PROFILE"))
	}
}

// server returns the configuration of the server that this process runs unless another process has
// locked the directory, and that of the connection to the other one.
func (f *uploadFlags) server(rate float64) (own serve.Config, client remote.Config) {
	own = serve.Config{
		Dir: f.dir, Jobs: f.jobs, ParseJobs: jobsParser(), Queues: []string{queue.DefaultQueue}, Grace: 1,
		Command:  isolate.Config{Grace: isolate.DefaultGrace},
		Transfer: transfer.Config{Logger: slog.New(slog.DiscardHandler), S3: s3.Open},
		MinFree:  uploadMinFree,
		Logger:   slog.New(slog.NewTextHandler(f.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Patience: 1,
	}
	if rate > 0 {
		limiter := stint.NewLimiter(rate, stint.LimiterConfig{})
		own.Transfer.Rate = &limiter
	}
	// Not STINT_PATIENCE: when the process that has the directory ends, this one takes over.
	client.Patience, client.Timeout = time.Second, callTimeout
	return own, client
}

// uploadMinFree is the free disk space below which uploads are refused, in bytes: only their tasks
// are on this disk, and a full disk may be why its files are uploaded.
const uploadMinFree = 16 << 20

// files returns the paths of what the arguments and --from name, and the errors of directories that cannot be read.
func (f *uploadFlags) files(args []string) (files []string, unread []error, err error) {
	listed, err := f.listed()
	if err != nil {
		return nil, nil, err
	}
	var patterns []string
	for _, arg := range args {
		if arg == transfer.Input {
			files = append(files, arg)
		} else {
			patterns = append(patterns, arg)
		}
	}
	found, err := transfer.Files(patterns...)
	named, err2 := transfer.FilesNamed(listed...)
	err = errors.Join(err, err2)
	unread = append(found.Unread, named.Unread...)
	switch left := append(found.Left, named.Left...); len(left) {
	case 0:
	case 1:
		printTo(f.err, "stint: left out 1 file below directories that is a symbolic link, socket or device: %s\n",
			view.Plain(left[0]))
	default:
		printTo(f.err, "stint: left out %d files below directories that are symbolic links, sockets or devices, first %s\n",
			len(left), view.Plain(left[0]))
	}
	seen := make(map[string]bool)
	for _, name := range append(found.Files, named.Files...) {
		if seen[name] {
			continue
		}
		seen[name] = true
		if name == transfer.Input { // a file of that name
			name = "./" + name
		}
		files = append(files, name)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case len(files)+len(unread) == 0:
		return nil, nil, errors.New("say what to upload: files, directories, or - for standard input")
	case f.name != "" && len(files) > 1:
		return nil, nil, fmt.Errorf("--name is for one file, and there are %d", len(files))
	case f.name == "" && slices.Contains(files, transfer.Input):
		return nil, nil, errors.New("standard input has no name: give --name")
	}
	return files, unread, nil
}

// listed returns the lines of the file of --from.
func (f *uploadFlags) listed() (lines []string, err error) {
	var r io.Reader = f.in
	switch f.from {
	case "":
		return nil, nil
	case "-":
	default:
		file, err := os.Open(f.from)
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		defer func() { _ = file.Close() }() // only read
		r = file
	}
	s := bufio.NewScanner(r)
	for s.Scan() {
		if line := s.Text(); line != "" {
			lines = append(lines, line)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("--from %s: %w", f.from, err)
	}
	return lines, nil
}

// awaitToken checks the file with the token. If there is none, it waits as long as other commands
// wait for a server: a server that was started a moment ago writes it.
func (f *uploadFlags) awaitToken() error {
	wait, err := patience()
	if f.tokenFile == "" || err != nil {
		return err
	}
	for began := clock.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, err := bearer.Read(f.tokenFile)
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) || clock.Now().Sub(began) >= wait {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
}

// show returns how to show the uploads.
func (f *uploadFlags) show() (upload.Show, error) {
	mode, err := progress.ParseMode(f.progress)
	if mode == progress.ModeAuto {
		mode = progress.ModePlain
		if isTerminal(f.err) {
			mode = progress.ModeBar
		}
	}
	notes := upload.Notes{W: f.err}
	switch mode {
	case progress.ModeBar:
		return &upload.Bars{W: f.err, Width: func() int { return width(f.err) }}, err
	case progress.ModeJSON:
		return &upload.JSON{Notes: notes, Out: f.streams}, err
	case progress.ModeNone:
		return notes, err
	default:
		return &upload.Lines{Notes: notes}, err
	}
}

const transfersLong = `List uploads: state, progress, bytes per second, time left, attempt and name.

They are those in the directory of stint upload, unless --server or STINT_SERVER names
another one.`

func newTransfers(s *streams) *cobra.Command {
	c := client{streams: s, fallback: uploadDir()}
	all := false
	cmd := &cobra.Command{
		Use: "transfers", Short: "List uploads", Long: transfersLong, Args: nothingElse,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.address == "" && os.Getenv(serverEnv) == "" && !serves(c.fallback) {
				printTo(s.err, "stint: no stint upload runs, so uploads in %s cannot be listed; "+
					"unfinished ones continue with the next stint upload\n", c.fallback)
				return nil
			}
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return c.transfers(ctx, server, all)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list finished ones, too")
	c.register(cmd)
	return cmd
}

// serves reports whether a directory has the socket of a server.
func serves(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, serve.SocketName))
	return err == nil
}

// transfers lists uploads.
func (c *client) transfers(ctx context.Context, server *remote.Server, all bool) error {
	var rows []upload.Row
	var lacking error
	for t, err := range transfer.Find(ctx, server.Queue, queue.Filter{}) {
		switch {
		case isPartial(err):
			lacking = missing(err, "uploads")
		case err != nil:
			return err
		case t.State.Finished() && !all:
		case !c.json:
			rows = append(rows, upload.RowOf(t))
		default:
			if err := c.print(t); err != nil {
				return err
			}
		}
	}
	if c.json {
		return lacking
	}
	return cmp.Or(upload.Table(c.out, rows), lacking)
}
