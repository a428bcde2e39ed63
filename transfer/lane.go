package transfer

import (
	"net/url"
	"sync/atomic"

	"github.com/stintgo/stint/transfer/internal/protocol"
)

// lane is a range of chunks of a file that are sent one after the other, to one upload of the
// server: the whole file, or a partial upload. One goroutine works on it; others read the
// atomic fields.
type lane struct {
	first, last int      // its chunks, without last
	start, end  int64    // its bytes in the file
	known       bool     // offset is that of the server
	next        *hashing // of the next chunk; nil if there is none
	refused     bool     // the last request had the last bytes, and the server said that they do not match a checksum

	url     atomic.Pointer[url.URL] // of the upload; nil before it is created
	offset  atomic.Int64            // in the file: the server has the bytes of the lane before it
	sending atomic.Pointer[body]    // of the request that is being made; nil between requests
}

// described describes the lane for the server.
func (l *lane) described() protocol.Lane {
	return protocol.Lane{URL: l.url.Load(), First: l.first, Last: l.last, Start: l.start, End: l.end}
}
