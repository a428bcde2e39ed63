package transfer

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintgo/stint/internal/bearer"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// tusVersion is the version of the protocol: https://tus.io/protocols/resumable-upload
const tusVersion = "1.0.0"

// tusClient makes the requests of tus. It is safe for concurrent use.
type tusClient struct {
	http     *http.Client
	endpoint *url.URL
	header   http.Header   // of the user
	token    string        // the file with the token; "" for none
	stall    time.Duration // for the answer to a request without a body
}

var _ protocol.Server = (*tusClient)(nil)

// newTus returns the client of a tus server.
func newTus(cfg Config, u *Upload) (*tusClient, error) {
	header, err := u.header()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, u.To, nil) //nolint:noctx // only its URL is used
	if err != nil {
		return nil, err
	}
	return &tusClient{http: cfg.Client, endpoint: request.URL, header: header, token: u.TokenFile, stall: cfg.Stall}, nil
}

// Abilities asks what the server can do. Servers that do not answer OPTIONS have the core
// and creation.
func (c *tusClient) Abilities(ctx context.Context) (protocol.Abilities, error) {
	answer, err := c.do(ctx, http.MethodOptions, c.endpoint, nil, nil, 0)
	if refused, ok := errors.AsType[*statusError](err); ok &&
		(refused.status == http.StatusMethodNotAllowed || refused.status == http.StatusNotImplemented) {
		return protocol.Abilities{}, nil
	}
	if err != nil {
		return protocol.Abilities{}, c.reachable(err)
	}
	if versions := answer.Get("Tus-Version"); versions != "" && !slices.Contains(words(versions), tusVersion) {
		return protocol.Abilities{}, retry.Permanent(fmt.Errorf("%s speaks tus %s, and this client %s",
			c.endpoint.Redacted(), versions, tusVersion))
	}
	extensions := words(answer.Get("Tus-Extension"))
	has := func(extension string) bool { return slices.Contains(extensions, extension) }
	a := protocol.Abilities{
		Lanes: has("concatenation"), Abort: has("termination"), Deferred: has("creation-defer-length"),
	}
	if sums := words(answer.Get("Tus-Checksum-Algorithm")); has("checksum") {
		a.SHA256 = slices.Contains(sums, "sha256") && !slices.Contains(sums, crc32c)
		a.Sums = a.SHA256 || slices.Contains(sums, crc32c)
	}
	a.SizeMax, _ = strconv.ParseInt(answer.Get("Tus-Max-Size"), 10, 64) // a server may omit it
	return a, nil
}

// words splits a header that is a list.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// tokenKey is the metadata key with the token of a file. Package receiver knows it; other servers keep it with the
// rest of the metadata.
const tokenKey = "stint-upload"

// Begin creates the upload of a lane.
func (c *tusClient) Begin(ctx context.Context, f *protocol.File, l protocol.Lane) (*url.URL, int64, error) {
	fields := http.Header{}
	pairs := withSHA256(f)
	if f.Token != "" {
		pairs[tokenKey] = f.Token
	}
	if f.Size < 0 {
		fields.Set("Upload-Defer-Length", "1")
	} else {
		fields.Set("Upload-Length", strconv.FormatInt(l.End-l.Start, 10))
	}
	if f.Lanes > 1 {
		fields.Set("Upload-Concat", "partial")
		pairs = map[string]string{partOf: fmt.Sprintf("%s %d %d", f.Group, l.Start, f.Size)}
	}
	fields.Set("Upload-Metadata", metadata(pairs))
	at, held, err := c.create(ctx, fields)
	return at, held, c.reachable(err)
}

// withSHA256 returns the metadata of a file that is not a part.
func withSHA256(f *protocol.File) map[string]string {
	pairs := maps.Clone(f.Metadata)
	if f.SHA256 != "" {
		pairs["sha256"] = f.SHA256
	}
	return pairs
}

// create creates an upload and returns its URL, and how many bytes the server has of it. fields are the headers
// that say of what kind.
func (c *tusClient) create(ctx context.Context, fields http.Header) (at *url.URL, held int64, err error) {
	answer, err := c.do(ctx, http.MethodPost, c.endpoint, fields, nil, 0)
	if err != nil {
		return nil, 0, err
	}
	location := answer.Get("Location")
	if at, err = c.endpoint.Parse(location); err != nil || location == "" {
		return nil, 0, retry.Permanent(fmt.Errorf("%s created an upload without a usable Location: %q",
			c.endpoint.Redacted(), location))
	}
	held, _ = strconv.ParseInt(answer.Get("Upload-Offset"), 10, 64) // a server may omit it
	return at, held, nil
}

// Complete concatenates the uploads of the lanes. If the answer is lost and the request is made
// again, a server that does not recognize it keeps two files.
func (c *tusClient) Complete(ctx context.Context, f *protocol.File, lanes []*url.URL) (string, error) {
	urls := make([]string, len(lanes))
	for i, at := range lanes {
		urls[i] = at.String()
	}
	fields := http.Header{}
	fields.Set("Upload-Concat", "final;"+strings.Join(urls, " "))
	fields.Set("Upload-Metadata", metadata(withSHA256(f)))
	const copying = 30 // some servers copy the parts before they answer
	slow := *c
	slow.stall *= copying
	final, _, err := slow.create(ctx, fields)
	if isMismatch(err) {
		return "", fmt.Errorf("%w: %w", protocol.ErrMismatch, err)
	}
	if err != nil {
		return "", err
	}
	return final.String(), nil
}

// reachable returns the error of a request to the endpoint. That the endpoint does not exist
// is permanent, unlike an upload that does not.
func (c *tusClient) reachable(err error) error {
	if refused, ok := errors.AsType[*statusError](err); ok && errors.Is(err, protocol.ErrGone) {
		return retry.Permanent(fmt.Errorf("there is no tus server at %s; check the URL (%w)",
			c.endpoint.Redacted(), refused)) // and not protocol.ErrGone, which is about an upload
	}
	return err
}

// Held returns how many bytes of a lane the server has.
func (c *tusClient) Held(ctx context.Context, _ *protocol.File, l protocol.Lane) (protocol.Held, error) {
	answer, err := c.do(ctx, http.MethodHead, l.URL, nil, nil, 0)
	if err != nil {
		return protocol.Held{}, err
	}
	offset, err := offsetOf(http.MethodHead, answer)
	return protocol.Held{Bytes: offset}, err
}

func offsetOf(method string, answer http.Header) (int64, error) {
	offset, err := strconv.ParseInt(answer.Get("Upload-Offset"), 10, 64)
	if err != nil || offset < 0 {
		return 0, fmt.Errorf("the answer to %s has the Upload-Offset %q", method, answer.Get("Upload-Offset"))
	}
	return offset, nil
}

// Send sends a piece of a lane.
func (c *tusClient) Send(ctx context.Context, _ *protocol.File, l protocol.Lane, p *protocol.Piece) (int64, error) {
	fields := http.Header{}
	fields.Set("Content-Type", "application/offset+octet-stream")
	fields.Set("Upload-Offset", strconv.FormatInt(p.Offset, 10))
	if p.Sums {
		fields.Set("Upload-Checksum", checksum(p))
	}
	if p.Whole >= 0 {
		fields.Set("Upload-Length", strconv.FormatInt(p.Whole, 10))
	}
	content := p.Body
	if p.Size == 0 { // another empty body would be sent without its length
		content = http.NoBody
	}
	answer, err := c.do(ctx, http.MethodPatch, l.URL, fields, content, p.Size)
	if isMismatch(err) {
		return 0, fmt.Errorf("%w: %w", protocol.ErrChecksum, err)
	}
	if err != nil {
		return 0, err
	}
	return offsetOf(http.MethodPatch, answer)
}

// Abort deletes an upload.
func (c *tusClient) Abort(ctx context.Context, at *url.URL) error {
	if _, err := c.do(ctx, http.MethodDelete, at, nil, nil, 0); err != nil && !errors.Is(err, protocol.ErrGone) {
		return err
	}
	return nil
}

// originOf returns the origin of a URL (RFC 6454): a Location may name the default port, or have
// the host in capitals.
func originOf(u *url.URL) string {
	defaults := map[string]string{"http": "80", "https": "443"}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), defaults[u.Scheme]))
}

// do makes a request and returns the headers of its answer. A request without content has
// the time of stall; content has a watchdog of its own. Errors that no repetition can help
// are permanent.
func (c *tusClient) do(
	ctx context.Context, method string, at *url.URL, fields http.Header, content io.Reader, n int64,
) (http.Header, error) {
	if content == nil {
		bounded, stop := context.WithTimeoutCause(ctx, c.stall, protocol.ErrStalled)
		defer stop()
		ctx = bounded
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), content)
	if err != nil {
		return nil, retry.Permanent(err)
	}
	token := ""
	trusted := originOf(at) == originOf(c.endpoint)
	if trusted { // the user's headers and password may be secrets of that host
		request.Header = c.header.Clone()
		if at.User == nil { // an absolute Location has none
			request.URL.User = c.endpoint.User
		}
		if c.token != "" { // which may have been replaced since the last request
			if token, err = bearer.Read(c.token); err != nil {
				return nil, fmt.Errorf("the token for the server: %w", err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	maps.Copy(request.Header, fields)
	request.Header.Set("Tus-Resumable", tusVersion)
	request.ContentLength = n
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", method, at.Redacted(), context.Cause(ctx))
		}
		return nil, protocol.Unconnected(err)
	}
	defer response.Body.Close() //nolint:errcheck // the answer has been read
	const textMax = 512
	text, _ := io.ReadAll(io.LimitReader(response.Body, textMax)) // only for the message
	if response.StatusCode/100 == 2 {
		return response.Header, nil
	}
	refused := &statusError{
		method: method, at: at.Redacted(), status: response.StatusCode, text: strings.TrimSpace(string(text)),
	}
	if location, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		refused.remedy = "redirections are not followed: give the URL " + location.Redacted()
	}
	if token != "" && refused.status == http.StatusUnauthorized {
		if now, err := bearer.Read(c.token); err == nil && now != token {
			return nil, refused // replaced meanwhile: the next request has the new one
		}
		refused.remedy = fmt.Sprintf("the server refuses the token in %s: replace it, and retry the upload", c.token)
	}
	if !trusted && (refused.status == http.StatusUnauthorized || refused.status == http.StatusForbidden) {
		refused.remedy = fmt.Sprintf("%s named this URL in the header Location, and credentials are not sent to another "+
			"scheme or host: give the URL by which the server names itself, or have it name itself as its proxy does",
			c.endpoint.Redacted())
	}
	return nil, classify(refused, response.Header.Get("Retry-After"))
}

// statusChecksum is the status of a request whose Upload-Checksum does not match its body.
const statusChecksum = 460

// isMismatch reports whether an error is an answer with that status.
func isMismatch(err error) bool {
	refused, ok := errors.AsType[*statusError](err)
	return ok && refused.status == statusChecksum
}

// isBusy reports whether an error is an answer with the status 503.
func isBusy(err error) bool {
	refused, ok := errors.AsType[*statusError](err)
	return ok && refused.status == http.StatusServiceUnavailable
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
	http.StatusUnauthorized: "give credentials: --token-file or --header-env of stint upload, " +
		"Upload.TokenFile or HeaderEnv in a program",
	http.StatusForbidden: "the server refuses the credentials: those of --token-file or --header-env of stint upload, " +
		"Upload.TokenFile or HeaderEnv in a program",
	http.StatusRequestEntityTooLarge: "the file is too large for the server; raise its limit, or send a smaller " +
		"file",
	http.StatusPreconditionFailed:   "the server speaks another version of tus than " + tusVersion,
	http.StatusMethodNotAllowed:     "there is no tus server at this URL; check it",
	http.StatusUnsupportedMediaType: "there is no tus server at this URL; check it",
}

// retryAfterMax is the largest Retry-After that is believed, in seconds: a year. A larger one could overflow a
// time.Duration, or the times of a store.
const retryAfterMax = 365 * 24 * 60 * 60

// classify decides what an answer means: a permanent error, protocol.ErrGone, or an error that may
// not come again.
func classify(e *statusError, retryAfter string) error {
	switch {
	case e.status == http.StatusNotFound || e.status == http.StatusGone:
		return fmt.Errorf("%w: %w", protocol.ErrGone, e)
	case e.status >= http.StatusInternalServerError,
		slices.Contains([]int{
			statusChecksum, http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests, http.StatusRequestTimeout,
			http.StatusTooEarly,
		}, e.status):
		if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds >= 0 {
			return retry.After(time.Duration(min(seconds, retryAfterMax))*time.Second, e)
		}
		return e
	}
	e.remedy = cmp.Or(e.remedy, remedyTable[e.status])
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

// crc32c is the name that package receiver has for the CRC32C as an algorithm of the extension
// checksum. It is preferred: processors compute it many times faster than SHA-256, and it finds
// errors of transmission as well. Only HTTPS keeps attackers from changing data with its checksum.
const crc32c = "crc32c"

// checksum encodes the header Upload-Checksum.
func checksum(p *protocol.Piece) string {
	if p.SHA256 != nil {
		return "sha256 " + base64.StdEncoding.EncodeToString(p.SHA256)
	}
	return crc32c + " " + base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, p.CRC32C))
}
