// Package protocol is the seam between an upload and the protocol of its server. Package
// transfer writes rates, lanes, checkpoints, progress and repetitions once; a [Server] only
// makes the requests.
package protocol

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/stintgo/stint/retry"
)

// Server makes the requests of one upload. It is safe for concurrent use: the lanes of a file
// send at the same time. Each method makes few requests and does not repeat them. Its error is
// permanent ([github.com/stintgo/stint/retry.Permanent]) if no repetition can help, or wraps
// one of the errors below; the caller may repeat the call after any other.
type Server interface {
	// Abilities returns what the server can do.
	Abilities(ctx context.Context) (Abilities, error)
	// Begin begins the upload of a lane, and returns the URL that finds it again, also from
	// another process. With [Abilities.Shared] all lanes of a file get the same URL. held is the
	// number of bytes that the server has of the lane, if it has recognized [File.Token].
	Begin(ctx context.Context, f *File, l Lane) (at *url.URL, held int64, err error)
	// Held returns what the server has of a lane.
	Held(ctx context.Context, f *File, l Lane) (Held, error)
	// Send sends a piece of a lane and returns how many bytes of the lane the server has then.
	Send(ctx context.Context, f *File, l Lane, p *Piece) (int64, error)
	// Complete makes one file of all lanes, and returns the URL of the file. It may be called
	// again if its answer was lost.
	Complete(ctx context.Context, f *File, lanes []*url.URL) (string, error)
	// Abort deletes what the server has of the unfinished lanes with a URL. A lane that the
	// server does not have is not an error.
	Abort(ctx context.Context, at *url.URL) error
}

// Errors after which the whole file has to be sent again.
var (
	// ErrGone is wrapped by the errors of requests for an upload that the server does not have,
	// or not any more.
	ErrGone = errors.New("the server does not have the upload; it may have expired")
	// ErrMismatch is wrapped by errors that say that all bytes have arrived, and that they do
	// not match a checksum of the whole file.
	ErrMismatch = errors.New("the server has the whole file, and says that it does not match its checksum")
)

// ErrStalled is the cause of the end of a request in which the server took no bytes, or did
// not answer, for too long.
var ErrStalled = errors.New("the server took no bytes, or did not answer")

// Unconnected returns the error of a request without an answer. It is permanent if the server is not
// the one that the URL names: what speaks there does not change while requests are repeated.
func Unconnected(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return retry.Permanent(fmt.Errorf("%w; if a certificate authority of your own has signed it, start the process that "+
			"uploads with its certificate in SSL_CERT_FILE, and retry the upload", err))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return retry.Permanent(err)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return retry.Permanent(fmt.Errorf("%w: give a URL with http:// for this server", err))
	}
	return err
}

// ErrChecksum is wrapped by the error of [Server.Send] if the piece did not match its checksum.
var ErrChecksum = errors.New("the server says that the bytes do not match their checksum")

// Abilities are what a server can do.
type Abilities struct {
	Lanes    bool  // it joins the lanes of a file
	Shared   bool  // the lanes of a file have the same URL
	Abort    bool  // it deletes unfinished uploads
	Deferred bool  // it takes files whose size is known at their end
	Sums     bool  // pieces have checksums, and are kept as a whole or not at all
	SHA256   bool  // with Sums: the SHA-256 is one of them
	Commit   bool  // a file with one lane has to be completed, too
	Durable  bool  // unfinished uploads do not expire: their URL has to be in the store before the first byte
	SizeMax  int64 // of a file in bytes; 0 means no limit
	ChunkMin int64 // of a chunk in bytes
}

// File is a file that is uploaded. It does not change.
type File struct {
	Size     int64  // in bytes; -1 if it is known only at the end
	Chunk    int64  // size of a chunk in bytes; the last one may be shorter
	Lanes    int    // their number
	Group    string // 128 bits in hexadecimal digits, of this upload alone
	SHA256   string // in hexadecimal digits, if the server is to verify the file; else ""
	Metadata map[string]string
	// Token is the same in all attempts of a task to send this version of the file; "" for none. A server that
	// knows it begins no second upload.
	Token string
}

// Lane is a range of a file.
type Lane struct {
	URL         *url.URL // of Begin
	First, Last int      // its chunks, without Last; unused if the size is not known
	Start, End  int64    // its bytes in the file
}

// Held is what a server has of a lane.
type Held struct {
	Bytes int64 // from the beginning of the lane on
	// CRC32C has the checksums that the server has computed of the lane's whole chunks within
	// Bytes; nil if it tells none.
	CRC32C []uint32
}

// Piece is the content of one request: the rest of a chunk.
type Piece struct {
	Chunk  int   // its number in the file
	Offset int64 // in the lane
	Size   int64 // in bytes
	Whole  int64 // the size of the file if it is known with this piece, and was not before; else -1
	// Sums says that the checksums of the piece are known: CRC32C, and SHA256 if the server has
	// Abilities.SHA256; otherwise that is nil.
	Sums   bool
	CRC32C uint32
	SHA256 []byte
	Body   io.Reader
}

// Target is where a file is uploaded to.
type Target struct {
	To        *url.URL
	Name      string // of the file
	Endpoint  string // URL of the server, if To is not one; "" is the default
	Region    string // "" is the default
	Profile   string // of the file with credentials; "" is the default
	Transport http.RoundTripper
	Stall     time.Duration // until a request without a body has failed
}

// Opener returns the server of a target. It makes no request.
type Opener func(Target) (Server, error)
