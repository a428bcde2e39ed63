package transfer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintgo/stint/retry"
)

// tusVersion is the version of the protocol: https://tus.io/protocols/resumable-upload
const tusVersion = "1.0.0"

// errGone is wrapped by the errors of requests for an upload that the server does not have,
// or not any more.
var errGone = errors.New("the server does not have the upload; it may have expired")

// errStalled is the cause of a request that the watchdog has ended.
var errStalled = errors.New("the server took no bytes, or did not answer")

// abilities are what a server announces in its answer to OPTIONS.
type abilities struct {
	extensions []string
	sha256     bool  // of the algorithms of the checksum extension
	maxSize    int64 // bytes; 0 is no limit
}

func (a abilities) has(extension string) bool { return slices.Contains(a.extensions, extension) }

// client makes the requests of the protocol. It is safe for concurrent use.
type client struct {
	http     *http.Client
	endpoint *url.URL
	header   http.Header   // of the user
	stall    time.Duration // for the answer to a request without a body
}

// abilities asks what the server can do. Servers that do not answer OPTIONS have the core
// and creation.
func (c *client) abilities(ctx context.Context) (abilities, error) {
	answer, err := c.do(ctx, http.MethodOptions, c.endpoint, nil, nil, 0)
	if refused, ok := errors.AsType[*statusError](err); ok &&
		(refused.status == http.StatusMethodNotAllowed || refused.status == http.StatusNotImplemented) {
		return abilities{}, nil
	}
	if err != nil {
		return abilities{}, c.reachable(err)
	}
	if versions := answer.Get("Tus-Version"); versions != "" && !slices.Contains(words(versions), tusVersion) {
		return abilities{}, retry.Permanent(fmt.Errorf("%s speaks tus %s, and this client %s",
			c.endpoint.Redacted(), versions, tusVersion))
	}
	a := abilities{extensions: words(answer.Get("Tus-Extension"))}
	a.sha256 = a.has("checksum") && slices.Contains(words(answer.Get("Tus-Checksum-Algorithm")), "sha256")
	a.maxSize, _ = strconv.ParseInt(answer.Get("Tus-Max-Size"), 10, 64) // a server may omit it
	return a, nil
}

// words splits a header that is a list.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// create creates an upload and returns its URL. fields are the headers that say of what
// kind.
func (c *client) create(ctx context.Context, fields http.Header) (*url.URL, error) {
	answer, err := c.do(ctx, http.MethodPost, c.endpoint, fields, nil, 0)
	if err != nil {
		return nil, err
	}
	location := answer.Get("Location")
	at, err := c.endpoint.Parse(location)
	if err != nil || location == "" {
		return nil, retry.Permanent(fmt.Errorf("%s created an upload without a usable Location: %q",
			c.endpoint.Redacted(), location))
	}
	return at, nil
}

// reachable returns the error of a request to the endpoint. That the endpoint does not exist
// is permanent, unlike an upload that does not.
func (c *client) reachable(err error) error {
	if errors.Is(err, errGone) {
		return retry.Permanent(fmt.Errorf("there is no tus server at %s; check the URL (%s)",
			c.endpoint.Redacted(), err.Error())) // and not errGone
	}
	return err
}

// offset returns how many bytes of an upload the server has.
func (c *client) offset(ctx context.Context, at *url.URL) (int64, error) {
	answer, err := c.do(ctx, http.MethodHead, at, nil, nil, 0)
	if err != nil {
		return 0, err
	}
	return offsetOf(http.MethodHead, answer)
}

func offsetOf(method string, answer http.Header) (int64, error) {
	offset, err := strconv.ParseInt(answer.Get("Upload-Offset"), 10, 64)
	if err != nil || offset < 0 {
		return 0, fmt.Errorf("the answer to %s has the Upload-Offset %q", method, answer.Get("Upload-Offset"))
	}
	return offset, nil
}

// patch sends n bytes of an upload from an offset, and returns the offset after them.
func (c *client) patch(
	ctx context.Context, at *url.URL, offset, n int64, fields http.Header, content io.Reader,
) (int64, error) {
	if fields == nil {
		fields = http.Header{}
	}
	fields.Set("Content-Type", "application/offset+octet-stream")
	fields.Set("Upload-Offset", strconv.FormatInt(offset, 10))
	answer, err := c.do(ctx, http.MethodPatch, at, fields, content, n)
	if err != nil {
		return 0, err
	}
	return offsetOf(http.MethodPatch, answer)
}

// terminate deletes an upload. An upload that the server does not have is no error.
func (c *client) terminate(ctx context.Context, at *url.URL) error {
	if _, err := c.do(ctx, http.MethodDelete, at, nil, nil, 0); err != nil && !errors.Is(err, errGone) {
		return err
	}
	return nil
}

// do makes a request and returns the headers of its answer. A request without content has
// the time of stall; content has a watchdog of its own. Errors that no repetition can help
// are permanent.
func (c *client) do(
	ctx context.Context, method string, at *url.URL, fields http.Header, content io.Reader, n int64,
) (http.Header, error) {
	if content == nil {
		bounded, stop := context.WithTimeoutCause(ctx, c.stall, errStalled)
		defer stop()
		ctx = bounded
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), content)
	if err != nil {
		return nil, retry.Permanent(err)
	}
	if at.Host == c.endpoint.Host && at.Scheme == c.endpoint.Scheme { // the user's headers may be secrets of that host
		request.Header = c.header.Clone()
	}
	maps.Copy(request.Header, fields)
	request.Header.Set("Tus-Resumable", tusVersion)
	request.ContentLength = n
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", method, at.Redacted(), context.Cause(ctx))
		}
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read
	const textMax = 512
	text, _ := io.ReadAll(io.LimitReader(response.Body, textMax)) // only for the message
	if response.StatusCode/100 == 2 {
		return response.Header, nil
	}
	return nil, classify(&statusError{
		method: method, at: at.Redacted(), status: response.StatusCode, text: strings.TrimSpace(string(text)),
	}, response.Header.Get("Retry-After"))
}

// statusChecksum is the status of a request whose Upload-Checksum does not match its body.
const statusChecksum = 460

// isMismatch reports whether an error is an answer with that status.
func isMismatch(err error) bool {
	refused, ok := errors.AsType[*statusError](err)
	return ok && refused.status == statusChecksum
}

// statusError is an answer that is not a success.
type statusError struct {
	method, at string
	status     int
	text       string // of the server
	remedy     string
}

// Error names the request, the status, what the server says, and what to do.
func (e *statusError) Error() string {
	name := http.StatusText(e.status)
	if e.status == statusChecksum {
		name = "Checksum Mismatch"
	}
	message := fmt.Sprintf("%s %s: status %d %s", e.method, e.at, e.status, name)
	if e.text != "" {
		message += fmt.Sprintf(" (%.200q)", e.text)
	}
	if e.remedy != "" {
		message += "; " + e.remedy
	}
	return message
}

// remedyTable says what to do about statuses that no repetition can help.
var remedyTable = map[int]string{
	http.StatusUnauthorized: "set the credentials of the server, see Upload.HeaderEnv",
	http.StatusForbidden:    "the server refuses this user; check the credentials, see Upload.HeaderEnv",
	http.StatusRequestEntityTooLarge: "the file is too large for the server; raise its limit, or send a smaller " +
		"file",
	http.StatusPreconditionFailed:   "the server speaks another version of tus than " + tusVersion,
	http.StatusMethodNotAllowed:     "there is no tus server at this URL; check it",
	http.StatusUnsupportedMediaType: "there is no tus server at this URL; check it",
}

// classify decides what an answer means: a permanent error, errGone, or an error that may
// not come again.
func classify(e *statusError, retryAfter string) error {
	switch {
	case e.status == http.StatusNotFound || e.status == http.StatusGone:
		return fmt.Errorf("%w: %w", errGone, e)
	case e.status >= http.StatusInternalServerError,
		slices.Contains([]int{
			statusChecksum, http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests, http.StatusRequestTimeout,
			http.StatusTooEarly,
		}, e.status):
		if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds >= 0 {
			return retry.After(time.Duration(seconds)*time.Second, e)
		}
		return e
	}
	e.remedy = remedyTable[e.status]
	return retry.Permanent(e)
}

// metadata encodes the header Upload-Metadata. The keys are sorted, so that equal uploads
// make equal requests.
func metadata(pairs map[string]string) string {
	encoded := make([]string, 0, len(pairs))
	for key, value := range pairs {
		encoded = append(encoded, key+" "+base64.StdEncoding.EncodeToString([]byte(value)))
	}
	slices.Sort(encoded)
	return strings.Join(encoded, ",")
}

// checksum encodes the header Upload-Checksum.
func checksum(sha256 []byte) string { return "sha256 " + base64.StdEncoding.EncodeToString(sha256) }
