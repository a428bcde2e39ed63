package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint/internal/bearer"
	"github.com/stintgo/stint/queue"
)

// Kind is the kind of the tasks that upload files. [Handle] sets its handler.
const Kind queue.Kind[Upload] = "stint.upload"

// DefaultRetries is how often [Add] has a failed upload tried again: an upload is dead after
// one attempt more.
const DefaultRetries = 3

// Input is the Path of an upload of [Config.Input].
const Input = "-"

// HeaderEnvPrefix begins the names of the environment variables that uploads may use.
const HeaderEnvPrefix = "STINT_UPLOAD_"

// Upload is a file to upload: the payload of a task of [Kind].
type Upload struct {
	// Path is the file on the worker's machine, or [Input]. [Add] makes it absolute.
	Path string `json:"path"`
	// To is the URL of the tus server at which uploads are created, or s3://BUCKET/PREFIX: the
	// key of the object is PREFIX, a slash if PREFIX has none at its end, and the name.
	To string `json:"to"`
	// Endpoint is the URL of the S3 server; "" is the one of AWS for Region.
	Endpoint string `json:"endpoint,omitempty"`
	// Region is that of an S3 bucket; "" is us-east-1.
	Region string `json:"region,omitempty"`
	// Profile names the credentials for S3 in the worker's shared credentials file
	// (~/.aws/credentials, or AWS_SHARED_CREDENTIALS_FILE). With "" the worker uses
	// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of its environment,
	// and without those the profile default. The credentials are not kept in the store.
	Profile string `json:"profile,omitempty"`
	// Name is the name of the file for the server and for people; "" is the last part of
	// Path.
	Name string `json:"name,omitempty"`
	// ChunkSize is the number of bytes of a request, up to [MaxChunkSize]; 0 is [DefaultChunkSize]. A file of
	// more than [MaxChunks] chunks has larger ones. Choose smaller chunks for connections
	// that break often, since a chunk with a checksum is kept by the server as a whole or
	// not at all.
	ChunkSize int64 `json:"chunk_size,omitempty"`
	// Lanes is the number of parts of the file that are sent at once, from 1 to [MaxLanes];
	// 0 means 1. It is 1 at a server without the extension concatenation.
	Lanes int `json:"lanes,omitempty"`
	// Verify sends the SHA-256 of the whole file with the metadata key sha256, in
	// hexadecimal digits, so that the server can refuse a file that is not the same. The
	// file is read once more before it is sent. The checksums of chunks do not depend on
	// it. An S3 server compares the CRC32C of the whole object, and keeps the SHA-256 as its
	// metadata. [Input] cannot be read before it is sent, and is refused with Verify.
	Verify bool `json:"verify,omitempty"`
	// Metadata are further pairs of Upload-Metadata, or of the metadata of an S3 object. Keys
	// are ASCII without spaces and commas, for S3 letters, digits and ._-, and not one of those
	// that the package sets: filename, sha256, part-of, stint-upload.
	Metadata map[string]string `json:"metadata,omitempty"`
	// HeaderEnv names, for headers of every request, the environment variables of the
	// worker that have their values: {"Authorization": "STINT_UPLOAD_AUTH"}. So secrets are
	// not kept in the store. They are sent to the scheme and host of To alone. The names
	// begin with [HeaderEnvPrefix], so that a task cannot send other secrets of the worker to
	// a host of its choice.
	HeaderEnv map[string]string `json:"header_env,omitempty"`
	// TokenFile is the path of a file with the token that the server wants as "Authorization:
	// Bearer" (RFC 6750). Each request reads it, so the store has the path and not the token, and
	// the file may be replaced, by a rename, while the upload runs. It belongs to the worker's
	// user or root, and no other user may read it. [Add] makes the path absolute.
	TokenFile string `json:"token_file,omitempty"`
	// InputName is the [Config.InputName] of the worker whose input is sent, if Path is [Input].
	InputName string `json:"input_name,omitempty"`
	// Size is the size of the file in bytes when it was added, for lists: [Add] sets it.
	// Each attempt sends the file as it is then.
	Size int64 `json:"size,omitempty"`
}

// name returns the name of the file.
func (u *Upload) name() string {
	if u.Name != "" {
		return u.Name
	}
	if u.Path == Input {
		return "stdin"
	}
	return filepath.Base(u.Path)
}

// metadata returns the metadata of the file without its checksum.
func (u *Upload) metadata() map[string]string {
	pairs := maps.Clone(u.Metadata)
	if pairs == nil {
		pairs = make(map[string]string)
	}
	pairs["filename"] = u.name()
	return pairs
}

// header reads the values of the headers from the environment. It checks that there is a token.
func (u *Upload) header() (http.Header, error) {
	header := make(http.Header)
	for name, variable := range u.HeaderEnv {
		value, ok := os.LookupEnv(variable)
		if !ok {
			return nil, fmt.Errorf("the environment variable %s, with the value of the header %s, is not set; "+
				"set it for the worker, and retry the upload", variable, name)
		}
		header.Set(name, value)
	}
	if u.TokenFile != "" {
		if _, err := bearer.Read(u.TokenFile); err != nil {
			return nil, fmt.Errorf("the token for the server: %w; repair the file, and retry the upload", err)
		}
	}
	return header, nil
}

// validate reports every problem of an upload at once.
func (u *Upload) validate() error {
	var errs []error
	if u.Path == "" {
		errs = append(errs, errors.New("it has no Path"))
	}
	if u.Path == Input && u.Verify {
		errs = append(errs, errors.New("with Verify (--verify) a checksum is sent before the content, and standard input "+
			"can be read once: leave it out, or store the content in a file and upload that"))
	}
	if !utf8.ValidString(u.Path + u.Name + u.TokenFile) {
		errs = append(errs, errors.New("its name is not UTF-8, and the store would keep another one: rename the file"))
	}
	to, err := url.Parse(u.To)
	switch {
	case err != nil || to.Host == "" || !slices.Contains([]string{"http", "https", schemeS3}, to.Scheme):
		errs = append(errs, fmt.Errorf("to %q is neither the http or https URL of a tus server nor s3://BUCKET/PREFIX",
			redacted(u.To)))
	case to.Scheme == schemeS3:
		errs = append(errs, u.validateS3())
	case u.Endpoint+u.Region+u.Profile != "":
		errs = append(errs, fmt.Errorf("to %q is not an s3:// URL; Endpoint, Region and Profile are for those",
			redacted(u.To)))
	}
	if u.ChunkSize < 0 || u.ChunkSize > MaxChunkSize || u.Lanes < 0 || u.Lanes > MaxLanes {
		errs = append(errs, fmt.Errorf("ChunkSize is %d and Lanes %d; they are 0 for the default, or more: up to %d bytes "+
			"and %d lanes", u.ChunkSize, u.Lanes, int64(MaxChunkSize), MaxLanes))
	}
	for name, variable := range u.HeaderEnv {
		if name == "" || !strings.HasPrefix(variable, HeaderEnvPrefix) {
			errs = append(errs, fmt.Errorf("the value of the header %q is in the variable %q; call the variable %sNAME", name,
				variable, HeaderEnvPrefix))
		}
		if u.TokenFile != "" && strings.EqualFold(name, "Authorization") {
			errs = append(errs, errors.New("TokenFile (--token-file) sets the header Authorization: "+
				"leave it out of HeaderEnv (--header-env)"))
		}
	}
	for key := range u.Metadata {
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }) ||
			slices.Contains([]string{"filename", "sha256", partOf, tokenKey}, key) {
			errs = append(errs, fmt.Errorf("the metadata key %q is one that the package sets, or is not ASCII without "+
				"spaces and commas", key))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: upload of %q: %w", queue.ErrInvalid, u.Path, err)
	}
	return nil
}

// schemeS3 is the scheme of the URLs of S3 buckets.
const schemeS3 = "s3"

// validateS3 checks what only uploads to S3 have.
func (u *Upload) validateS3() error {
	var errs []error
	if at, err := url.Parse(u.Endpoint); u.Endpoint != "" && (err != nil || at.Host == "" || hasMore(at) ||
		at.Scheme != "http" && at.Scheme != "https" || at.Path != "" && at.Path != "/") {
		errs = append(errs, fmt.Errorf("the endpoint %q is not the http or https URL of an S3 server, without path and "+
			"credentials", redacted(u.Endpoint)))
	}
	if at, err := url.Parse(u.To); err == nil && hasMore(at) {
		errs = append(errs, fmt.Errorf("to %q has more than a bucket and a prefix, in which ? is written %%3F, and # %%23",
			redacted(u.To)))
	}
	if len(u.HeaderEnv) > 0 || u.TokenFile != "" {
		errs = append(errs, errors.New("HeaderEnv and TokenFile are for tus servers; the credentials of S3 are in "+
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a Profile"))
	}
	for key := range u.Metadata {
		if strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune(keyCharacters, r) }) {
			errs = append(errs, fmt.Errorf("the metadata key %q would be a part of a header of S3: write it with letters, "+
				"digits and ._-", key))
		}
	}
	return errors.Join(errs...)
}

// keyCharacters are those of the keys of metadata that S3 gets: a header has fewer than Upload-Metadata.
const keyCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// hasMore reports whether a URL has parts beside scheme, host and path. Credentials would be kept
// in the store.
func hasMore(at *url.URL) bool { return at.User != nil || at.RawQuery != "" || at.Fragment != "" }

// redacted returns a URL for messages, without its password.
func redacted(text string) string {
	if parsed, err := url.Parse(text); err == nil {
		return parsed.Redacted()
	}
	at := strings.LastIndex(text, "@") // what is before may be a password that cannot be parsed
	if at < 0 {
		return text
	}
	return "xxxxx" + text[at:]
}

// Add submits uploads as tasks, in this order, and returns when they are durable. options
// apply to each: their queue, tier, key and so on. A MaxAttempts of 0 means [DefaultRetries]
// + 1; uploads of [Input] have one attempt. A worker that runs the queue sends the
// files, in this process or another; see [Handle].
//
// Files are checked when they are added: a file that is missing, or that is not a regular file,
// is an error, and then no upload is added. More than [queue.MaxSubmit] uploads are submitted
// in parts: if a part fails, Add returns the receipts of the parts before it and the error.
//
// Errors: [queue.ErrInvalid], those of [os.Stat], and those of [queue.Queue.Submit].
func Add(ctx context.Context, q *queue.Queue, options queue.Options, uploads ...Upload) ([]queue.Receipt, error) {
	tasks := make([]queue.NewTask, len(uploads))
	for i := range uploads {
		var err error
		if tasks[i], err = Prepare(q, uploads[i], options); err != nil {
			return nil, err
		}
	}
	var receipts []queue.Receipt
	for some := range slices.Chunk(tasks, queue.MaxSubmit) {
		accepted, err := q.Submit(ctx, some...)
		receipts = append(receipts, accepted...)
		if err != nil {
			return receipts, err
		}
	}
	return receipts, nil
}

// Prepare makes the task of an upload, for [queue.Queue.Submit]; see [Add].
func Prepare(q *queue.Queue, u Upload, o queue.Options) (queue.NewTask, error) {
	if err := u.validate(); err != nil {
		return queue.NewTask{}, err
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 1 + DefaultRetries
	}
	if u.TokenFile != "" {
		var err error
		if u.TokenFile, err = filepath.Abs(u.TokenFile); err != nil {
			return queue.NewTask{}, err
		}
	}
	if u.Path == Input {
		o.MaxAttempts = 1
		return Kind.Prepare(q, u, o)
	}
	info, err := os.Stat(u.Path)
	if err != nil {
		return queue.NewTask{}, err
	}
	if !info.Mode().IsRegular() {
		return queue.NewTask{}, fmt.Errorf("%w: %s is not a regular file; see Files for directories", queue.ErrInvalid,
			u.Path)
	}
	u.Size = info.Size()
	if u.Path, err = filepath.Abs(u.Path); err != nil {
		return queue.NewTask{}, err
	}
	if !utf8.ValidString(u.Path) {
		return queue.NewTask{}, fmt.Errorf("%w: the path %q is not UTF-8, and the store would keep another one: rename the "+
			"directory", queue.ErrInvalid, u.Path)
	}
	return Kind.Prepare(q, u, o)
}
