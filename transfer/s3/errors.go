package s3

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// remedyTable says what to do about the codes of errors that no repetition can help; see
// "Error responses" of the API reference of Amazon S3.
var remedyTable = map[string]string{
	"NoSuchBucket": "create the bucket, or correct --to",
	"SignatureDoesNotMatch": "the secret key is wrong: correct AWS_SECRET_ACCESS_KEY or the profile, and retry the " +
		"upload",
	"InvalidAccessKeyId": "the server does not know the access key: correct AWS_ACCESS_KEY_ID or the profile, and retry " +
		"the upload",
	"XAdminUserNotFound": "the server does not know the access key: correct AWS_ACCESS_KEY_ID or the profile, and retry " +
		"the upload", // of Versity S3 Gateway
	"AccessDenied":                 "let this key upload to the bucket, or use another key, and retry the upload",
	"ExpiredToken":                 "renew AWS_SESSION_TOKEN and its keys, and retry the upload",
	"InvalidToken":                 "renew AWS_SESSION_TOKEN and its keys, and retry the upload",
	"AuthorizationHeaderMalformed": "the bucket is in another region: set AWS_REGION or --region",
	"PermanentRedirect":            "the bucket is in another region or at another endpoint: set --region or --endpoint",
	"RequestTimeTooSkewed":         "set the clock of this machine",
	"EntityTooLarge":               "the file is too large for the server",
	"NotImplemented":               "the server does not support this request; try it without --verify",
}

// isChecksum reports whether a code says that bytes did not match their checksum.
func isChecksum(code string) bool {
	switch code {
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "ContentSHA256Mismatch":
		return true
	}
	return false
}

// failed says what the error of a request means: it is permanent, wraps an error of package
// protocol, or may not come again.
func (s *server) failed(ctx context.Context, what string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s at %s: %w", what, s.endpoint, cause)
	}
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return protocol.Unconnected(fmt.Errorf("%s at %s: %w", what, s.endpoint, err))
	}
	err = fmt.Errorf("%s to s3://%s/%s at %s: status %d %s (%.200q)", what, s.bucket, s.key, s.endpoint,
		answer.StatusCode, answer.Code, answer.Message)
	switch {
	case answer.Code == "NoSuchUpload", answer.Code == "InvalidPart", answer.Code == "InvalidPartOrder":
		return fmt.Errorf("%w: %w", protocol.ErrGone, err)
	case isChecksum(answer.Code):
		return fmt.Errorf("%w: %w", protocol.ErrChecksum, err)
	case remedyTable[answer.Code] != "":
		return retry.Permanent(fmt.Errorf("%w; %s", err, remedyTable[answer.Code]))
	case answer.StatusCode/100 != 4,
		slices.Contains([]int{
			http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests, http.StatusTooEarly,
		}, answer.StatusCode),
		answer.Code == "RequestTimeout", answer.Code == "IncompleteBody": // a connection has been cut
		return err
	}
	return retry.Permanent(err)
}

// emptySHA256 returns the SHA-256 of no bytes.
func emptySHA256() []byte {
	sum := sha256.Sum256(nil)
	return sum[:]
}
