// Package s3 uploads files to buckets of servers that speak Amazon S3, by multipart uploads
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html). It is an adapter
// for package transfer:
//
//	transfer.Handle(q, transfer.Config{S3: s3.Open})
//
// A chunk of the file is a part of the multipart upload, with the number of the chunk plus one.
// The checkpoint of the task has the ID of the upload and the CRC32C of each chunk, but no
// ETags: those come from the list of parts, which has to be read anyway before an upload
// continues. Requests have the SHA-256 of a part in their signature and its CRC32C in
// x-amz-checksum-crc32c, so that a part is kept as a whole or not at all.
package s3

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// The files:
//
//   - s3.go: Open, and the requests of a multipart upload
//   - errors.go: which errors are permanent, and what to do about them

const (
	// partMin is the smallest size of a part that is not the last, and partMax the largest of
	// any, in bytes; see "Amazon S3 multipart upload limits".
	partMin = 5 << 20
	partMax = 5 << 30
	// partsMax is the largest number of parts of an upload.
	partsMax = 10_000
)

// ownerKey is the metadata key of an object with the group of its upload. It shows that an
// upload that the server does not have any more is complete, after its answer was lost.
const ownerKey = "Stint-Upload"

// Open returns the server of a target, with the credentials of this process; see
// transfer.Upload.Profile. It makes no request. It returns an error if there are no
// credentials.
func Open(t protocol.Target) (protocol.Server, error) {
	endpoint, secure := "s3.amazonaws.com", true
	if t.Endpoint != "" {
		at, err := url.Parse(t.Endpoint)
		if err != nil {
			return nil, err
		}
		endpoint, secure = at.Host, at.Scheme == "https"
	}
	region := t.Region
	if region == "" {
		region = "us-east-1"
	}
	creds, err := identity(t.Profile)
	if err != nil {
		return nil, err
	}
	core, err := minio.NewCore(endpoint, &minio.Options{
		Creds: creds, Secure: secure, Region: region, Transport: t.Transport,
		MaxRetries: 1, // package transfer repeats requests
	})
	if err != nil {
		return nil, fmt.Errorf("S3 server %s: %w", endpoint, err)
	}
	s := &server{
		core: core, bucket: t.To.Host, key: strings.Trim(t.To.Path, "/"), stall: t.Stall, endpoint: endpoint,
		parts: make(map[int]minio.ObjectPart),
	}
	if s.key != "" {
		s.key += "/"
	}
	s.key += t.Name
	return s, nil
}

// identity returns the credentials of a profile. Without a profile, those of the environment
// come first, as in the tools of AWS.
func identity(profile string) (*credentials.Credentials, error) {
	id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if profile == "" && id != "" && secret != "" {
		return credentials.NewStaticV4(id, secret, os.Getenv("AWS_SESSION_TOKEN")), nil
	}
	file := credentials.NewFileAWSCredentials("", profile)
	value, err := file.GetWithContext(nil)
	if err == nil && (value.AccessKeyID == "" || value.SecretAccessKey == "") {
		err = errors.New("the profile has no keys")
	}
	if err != nil {
		return nil, fmt.Errorf("no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the worker, or "+
			"name a profile of ~/.aws/credentials, and retry the upload (%w)", err)
	}
	return file, nil
}

// server makes the requests of one upload. It is safe for concurrent use.
type server struct {
	core        *minio.Core
	endpoint    string
	bucket, key string
	stall       time.Duration

	beginning sync.Mutex // held during Begin, so that the lanes have one upload
	begun     *url.URL   // guarded by beginning

	mu    sync.Mutex
	parts map[int]minio.ObjectPart // at the server, by number; guarded by mu
	// complete: the object is there, as an earlier attempt has completed it; guarded by mu.
	complete bool
}

var _ protocol.Server = (*server)(nil)

// Abilities makes no request: a wrong bucket or secret shows when an upload begins, and the
// right to ask for more may be missing.
func (s *server) Abilities(context.Context) (protocol.Abilities, error) {
	return protocol.Abilities{
		Lanes: true, Shared: true, Abort: true, Deferred: true, Sums: true, SHA256: true, Commit: true, Durable: true,
		SizeMax: partMax * partsMax, ChunkMin: partMin,
	}, nil
}

// Begin begins one multipart upload for all lanes of a file.
func (s *server) Begin(ctx context.Context, f *protocol.File, _ protocol.Lane) (*url.URL, int64, error) {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	if s.begun != nil {
		return s.begun, 0, nil
	}
	ctx, stop := s.bounded(ctx, 1)
	defer stop()
	fields := make(map[string]string)
	for key, value := range f.Metadata {
		if key != "filename" { // the key of the object has it
			fields[key] = mime.BEncoding.Encode("utf-8", value)
		}
	}
	fields[ownerKey], fields["X-Amz-Checksum-Algorithm"] = f.Group, "CRC32C"
	if f.SHA256 != "" {
		fields["sha256"] = f.SHA256
		fields["X-Amz-Checksum-Type"] = "FULL_OBJECT"
	}
	id, err := s.core.NewMultipartUpload(ctx, s.bucket, s.key, minio.PutObjectOptions{
		UserMetadata: fields, ContentType: mime.TypeByExtension(path.Ext(s.key)),
	})
	if err != nil {
		return nil, 0, s.failed(ctx, "begin the upload", err)
	}
	at := s.object()
	at.RawQuery = url.Values{"uploadId": {id}}.Encode()
	s.begun = at
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.parts)
	s.complete = false
	return at, 0, nil
}

// object returns the URL of the object.
func (s *server) object() *url.URL { return &url.URL{Scheme: "s3", Host: s.bucket, Path: "/" + s.key} }

// uploadID returns the ID of the multipart upload of a lane.
func uploadID(at *url.URL) string { return at.Query().Get("uploadId") }

// Held lists the parts of a lane from its first one to the first that is missing. Some servers
// keep no checksums of parts.
func (s *server) Held(ctx context.Context, f *protocol.File, l protocol.Lane) (protocol.Held, error) {
	var held protocol.Held
	for next := l.First + 1; ; {
		const most = 1000
		list, err := s.list(ctx, l.URL, next-1, most)
		if errors.Is(err, protocol.ErrGone) {
			if err = s.completed(ctx, f, err); err == nil {
				s.mu.Lock()
				s.complete = true
				s.mu.Unlock()
				return protocol.Held{Bytes: l.End - l.Start}, nil
			}
		}
		if err != nil {
			return protocol.Held{}, err
		}
		for _, part := range list.ObjectParts {
			if part.PartNumber != next || !fits(f, l, part) {
				return held, nil // what comes later is sent again
			}
			s.keep(part)
			held.Bytes += part.Size
			if sum, ok := crcOf(part); ok && len(held.CRC32C) == next-1-l.First {
				held.CRC32C = append(held.CRC32C, sum)
			}
			next++
		}
		if !list.IsTruncated || len(list.ObjectParts) == 0 {
			return held, nil
		}
	}
}

func (s *server) list(ctx context.Context, at *url.URL, after, most int) (minio.ListObjectPartsResult, error) {
	ctx, stop := s.bounded(ctx, 1)
	defer stop()
	list, err := s.core.ListObjectParts(ctx, s.bucket, s.key, uploadID(at), after, most)
	if err != nil {
		return list, s.failed(ctx, "list the parts", err)
	}
	return list, nil
}

// fits reports whether a part at the server is a chunk of a lane.
func fits(f *protocol.File, l protocol.Lane, part minio.ObjectPart) bool {
	if f.Size < 0 {
		return part.Size <= f.Chunk
	}
	chunk := part.PartNumber - 1
	return chunk < l.Last && part.Size == min(f.Chunk, f.Size-int64(chunk)*f.Chunk)
}

// crcOf returns the CRC32C of a part, if the server lists it.
func crcOf(part minio.ObjectPart) (sum uint32, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(part.ChecksumCRC32C)
	if err != nil || len(raw) != crcSize {
		return 0, false
	}
	return binary.BigEndian.Uint32(raw), true
}

// crcSize is the size of a CRC32C in bytes.
const crcSize = 4

// crcText encodes a CRC32C for headers.
func crcText(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// keep remembers a part that the server has.
func (s *server) keep(part minio.ObjectPart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[part.PartNumber] = part
}

// Send sends a chunk as a part. A part with the same number is replaced.
func (s *server) Send(ctx context.Context, _ *protocol.File, l protocol.Lane, p *protocol.Piece) (int64, error) {
	if p.Size > 0 || p.Offset == 0 { // an upload has at least one part
		if err := s.put(ctx, l.URL, p); err != nil {
			return 0, err
		}
	}
	return p.Offset + p.Size, nil
}

func (s *server) put(ctx context.Context, at *url.URL, p *protocol.Piece) error {
	if p.Chunk >= partsMax { // of an input: files have larger chunks then
		return retry.Permanent(fmt.Errorf("the input has more than %d parts; upload it with larger chunks", partsMax))
	}
	sum := crcText(p.CRC32C)
	part, err := s.core.PutObjectPart(ctx, s.bucket, s.key, uploadID(at), p.Chunk+1, p.Body, p.Size,
		minio.PutObjectPartOptions{
			Sha256Hex: hex.EncodeToString(p.SHA256), DisableContentSha256: true, // it is not computed again
			CustomHeader: http.Header{"X-Amz-Checksum-Crc32c": {sum}},
		})
	if err != nil {
		return s.failed(ctx, fmt.Sprintf("send part %d", p.Chunk+1), err)
	}
	part.PartNumber, part.Size, part.ChecksumCRC32C = p.Chunk+1, p.Size, sum
	s.keep(part)
	return nil
}

// Complete makes the object of its parts. With the SHA-256 of the file, the server also compares
// the CRC32C of the whole object, which is computed from those of the parts.
func (s *server) Complete(ctx context.Context, f *protocol.File, lanes []*url.URL) (string, error) {
	s.mu.Lock()
	complete := s.complete
	parts := make([]minio.ObjectPart, 0, len(s.parts))
	for i := range len(s.parts) {
		parts = append(parts, s.parts[i+1])
	}
	s.mu.Unlock()
	if complete {
		return s.object().String(), nil
	}
	if f.Size == 0 && len(parts) == 0 {
		empty := protocol.Piece{SHA256: emptySHA256(), Body: http.NoBody}
		if err := s.put(ctx, lanes[0], &empty); err != nil {
			return "", err
		}
		return s.Complete(ctx, f, lanes)
	}
	const assembling = 30 // some servers copy the parts before they answer
	ctx, stop := s.bounded(ctx, assembling)
	defer stop()
	options := minio.PutObjectOptions{}
	if f.SHA256 != "" && len(parts) > 0 && !slices.ContainsFunc(parts, func(part minio.ObjectPart) bool {
		return part.ChecksumCRC32C == "" // the server keeps no checksums
	}) {
		whole, err := minio.ChecksumFullObjectCRC32C.FullObjectChecksum(parts)
		if err != nil {
			return "", retry.Permanent(err)
		}
		options.UserMetadata = map[string]string{
			"X-Amz-Checksum-Type": "FULL_OBJECT", "X-Amz-Checksum-Crc32c": whole.Encoded(),
		}
	}
	completed := make([]minio.CompletePart, len(parts))
	for i, part := range parts {
		completed[i] = minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag, ChecksumCRC32C: part.ChecksumCRC32C}
	}
	_, err := s.core.CompleteMultipartUpload(ctx, s.bucket, s.key, uploadID(lanes[0]), completed, options)
	if err != nil {
		err = s.failed(ctx, "complete the upload", err)
		if errors.Is(err, protocol.ErrChecksum) {
			return "", fmt.Errorf("%w: %w", protocol.ErrMismatch, err)
		}
		if !errors.Is(err, protocol.ErrGone) {
			return "", err
		}
		if err = s.completed(ctx, f, err); err != nil {
			return "", err
		}
	}
	return s.object().String(), nil
}

// completed returns nil if the object is there and comes from this upload of the file, whose
// answer was lost, and otherwise gone. It returns another error if the server does not say.
func (s *server) completed(ctx context.Context, f *protocol.File, gone error) error {
	ctx, stop := s.bounded(ctx, 1)
	defer stop()
	info, err := s.core.StatObject(ctx, s.bucket, s.key, minio.StatObjectOptions{})
	if err == nil && f.Group != "" && info.UserMetadata[ownerKey] == f.Group {
		return nil
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); err == nil || ok && answer.StatusCode/100 == 4 {
		return gone // there is another object, none, or the key may only write
	}
	return s.failed(ctx, "look for the object", err)
}

// Abort deletes the parts of the upload.
func (s *server) Abort(ctx context.Context, at *url.URL) error {
	s.beginning.Lock()
	if s.begun != nil && s.begun.String() == at.String() {
		s.begun = nil
	}
	s.beginning.Unlock()
	ctx, stop := s.bounded(ctx, 1)
	defer stop()
	err := s.core.AbortMultipartUpload(ctx, s.bucket, s.key, uploadID(at))
	if err == nil {
		return nil
	}
	if err = s.failed(ctx, "abort the upload", err); errors.Is(err, protocol.ErrGone) {
		return nil
	}
	return err
}

// bounded ends a request without a body if the server does not answer for a number of stalls.
func (s *server) bounded(ctx context.Context, stalls time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, stalls*s.stall, protocol.ErrStalled)
}
