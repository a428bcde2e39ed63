package receiver

import (
	"net/http"
	"slices"
	"strings"
)

// Headers of all protocols that pages may read and send.
var (
	exposedTable = []string{
		"Location", tusResumable, "Tus-Version", "Tus-Extension", "Tus-Max-Size", "Tus-Checksum-Algorithm",
		uploadOffset, uploadLength, uploadMetadata, uploadDefer, uploadConcat, uploadExpires,
		uploadComplete, uploadLimit, draftVersion, "Retry-After",
	}
	acceptedTable = []string{
		"Authorization", // for the access check in front of the receiver: "*" would not cover it
		"Content-Type", "Content-Disposition", "Content-Digest", "Repr-Digest", "X-HTTP-Method-Override", "X-Requested-With",
		tusResumable, uploadOffset, uploadLength, uploadMetadata, uploadDefer, uploadConcat, uploadChecksum,
		uploadComplete, draftVersion,
	}
)

// allowOrigin sets the headers of the Fetch standard (https://fetch.spec.whatwg.org) that
// let pages of the configured origins use the receiver.
func (r *Receiver) allowOrigin(w http.ResponseWriter, req *http.Request) {
	if len(r.store.cfg.Origins) == 0 {
		return
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := req.Header.Get("Origin")
	if origin == "" || !slices.Contains(r.store.cfg.Origins, origin) && !slices.Contains(r.store.cfg.Origins, "*") {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if req.Method == http.MethodOptions && req.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", allowedMethods)
		h.Set("Access-Control-Allow-Headers", strings.Join(acceptedTable, ", "))
		h.Set("Access-Control-Max-Age", "86400")
		return
	}
	h.Set("Access-Control-Expose-Headers", strings.Join(exposedTable, ", "))
}
