package receiver

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Names of tus 1.0.0, https://tus.io/protocols/resumable-upload.
const (
	tusVersion    = "1.0.0"
	tusResumable  = "Tus-Resumable"
	tusExtensions = "creation,creation-with-upload,creation-defer-length,termination,checksum,checksum-trailer," +
		"expiration,concatenation"

	uploadOffset   = "Upload-Offset"
	uploadLength   = "Upload-Length"
	uploadMetadata = "Upload-Metadata"
	uploadDefer    = "Upload-Defer-Length"
	uploadChecksum = "Upload-Checksum"
	uploadConcat   = "Upload-Concat"
	uploadExpires  = "Upload-Expires"

	offsetStream = "application/offset+octet-stream"

	allowedMethods = "OPTIONS, HEAD, GET, POST, PATCH, PUT, DELETE"
)

// tusReceiver answers requests of tus 1.0.0.
type tusReceiver struct{ *requests }

// serve answers a request of tus 1.0.0. rest is the path after the one of the
// configuration.
func (r *tusReceiver) serve(w http.ResponseWriter, req *http.Request, rest string) error {
	w.Header().Set(tusResumable, tusVersion)
	method := req.Method
	if override := req.Header.Get("X-HTTP-Method-Override"); override != "" && method == http.MethodPost {
		method = override
	}
	if version := req.Header.Get(tusResumable); version != tusVersion && method != http.MethodGet {
		w.Header().Set("Tus-Version", tusVersion)
		return refuse(http.StatusPreconditionFailed, "the header Tus-Resumable must be %s", tusVersion)
	}
	if method == http.MethodPost {
		if rest != "" {
			return refuse(http.StatusMethodNotAllowed, "uploads are created by POST to %s", r.cfg.Path)
		}
		return r.tusCreate(w, req)
	}
	if method == http.MethodGet {
		return r.serveFile(w, req, rest)
	}
	u, err := r.find(rest)
	if err != nil {
		return err
	}
	switch method {
	case http.MethodHead:
		return r.tusHead(w, req, u)
	case http.MethodPatch:
		return r.tusPatch(w, req, u)
	case http.MethodDelete:
		return r.remove(w, req, u)
	}
	w.Header().Set("Allow", allowedMethods)
	return refuse(http.StatusMethodNotAllowed, "%s is not a method of uploads", method)
}

func (r *tusReceiver) tusCreate(w http.ResponseWriter, req *http.Request) error {
	meta, err := parseMetadata(strings.Join(req.Header.Values(uploadMetadata), ","))
	if err != nil {
		return err
	}
	partial, parts, err := parseConcat(req.Header.Get(uploadConcat))
	if err != nil {
		return err
	}
	if parts != nil {
		return r.tusConcat(w, parts, meta)
	}
	length, err := tusLength(req)
	if err != nil {
		return err
	}
	id := newID()
	u, err := r.tusUpload(req, id, partial, length, meta)
	if err != nil {
		return err
	}
	defer u.file.release()
	w.Header().Set("Location", r.location(u))
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	if err := r.tusFirstBody(w, req, s, u.id == id); err != nil {
		return err
	}
	if err := s.finishAtLength(); err != nil {
		return err
	}
	r.tusState(w, u)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// tusFirstBody receives the body of a creation, if it has one. An upload that gets nothing
// of it by the client's fault is removed, if the creation has made it: the client sends it again
// by another creation.
func (r *tusReceiver) tusFirstBody(w http.ResponseWriter, req *http.Request, s *session, made bool) error {
	remove := func(why error) error {
		if !made {
			return why
		}
		w.Header().Del("Location")
		return errors.Join(why, s.u.cancel())
	}
	switch {
	case s.u.offset > 0:
		return nil // a part that was created before: the client continues from the offset of the answer
	case req.ContentLength > 0 && req.Header.Get("Content-Type") != offsetStream:
		return remove(refuse(http.StatusUnsupportedMediaType, "the Content-Type of a body must be %s", offsetStream))
	case req.ContentLength == 0 || req.Header.Get("Content-Type") != offsetStream:
		return nil
	}
	err := r.tusReceive(req, s)
	if errorIs[*refusal](err) && s.u.offset == 0 {
		return remove(err)
	}
	return err
}

// tusLength returns the length that a creation gives, or -1 if it comes later.
func tusLength(req *http.Request) (int64, error) {
	text, later := req.Header.Get(uploadLength), req.Header.Get(uploadDefer)
	if text == "" && later == "1" {
		return -1, nil
	}
	length, ok := parseSize(text)
	if !ok || later != "" {
		return 0, refuse(statusBadRequest, "a creation needs Upload-Length, in bytes, or Upload-Defer-Length: 1")
	}
	return length, nil
}

// tusUpload makes the upload that a creation wants, with an ID, or returns the one that it names by its token or its
// place. The caller must release its file.
func (r *tusReceiver) tusUpload(
	req *http.Request, id string, partial bool, length int64, meta map[string]string,
) (*upload, error) {
	if text, ok := meta[metaPartOf]; ok && partial {
		at, err := parsePlace(text)
		if err != nil {
			return nil, err
		}
		if length < 0 || at.offset+length > at.total {
			return nil, refuse(statusBadRequest, "the part is not within the %d bytes of its group", at.total)
		}
		f, err := r.group(req, at.group, at.total)
		if err != nil {
			return nil, err
		}
		u, err := f.addLane(laneRecord{ID: id, Start: at.offset, Length: length, Partial: true, Metadata: meta})
		if err != nil {
			f.abandon()
		}
		return u, err
	}
	return r.single(req, laneRecord{ID: id, Length: length, Partial: partial, Metadata: meta})
}

func (r *tusReceiver) tusHead(w http.ResponseWriter, req *http.Request, u *upload) error {
	s, err := r.take(w, req, u) // what the client continues from must not change any more
	if err != nil {
		return err
	}
	defer s.end()
	// A client that finds all bytes there does not ask again: what has failed before must be
	// done now.
	if !u.ordered {
		if err := s.finishAtLength(); err != nil {
			return err
		}
	}
	r.tusState(w, u)
	w.Header().Set("Cache-Control", "no-store")
	if u.length < 0 {
		w.Header().Set(uploadDefer, "1")
	} else {
		w.Header().Set(uploadLength, strconv.FormatInt(u.length, 10))
	}
	if len(u.meta) > 0 {
		w.Header().Set(uploadMetadata, formatMetadata(u.meta))
	}
	if concat := r.concatHeader(u); concat != "" {
		w.Header().Set(uploadConcat, concat)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func formatMetadata(meta map[string]string) string {
	pairs := make([]string, 0, len(meta))
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		pairs = append(pairs, strings.TrimSpace(key+" "+base64.StdEncoding.EncodeToString([]byte(meta[key]))))
	}
	return strings.Join(pairs, ",")
}

func (r *tusReceiver) concatHeader(u *upload) string {
	if u.partial {
		return "partial"
	}
	f := u.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if u.number >= 0 || f.concat == nil {
		return ""
	}
	urls := make([]string, len(f.concat.Parts))
	for i, id := range f.concat.Parts {
		urls[i] = r.cfg.Path + id
	}
	return "final;" + strings.Join(urls, " ")
}

func (r *tusReceiver) tusPatch(w http.ResponseWriter, req *http.Request, u *upload) error {
	if req.Header.Get("Content-Type") != offsetStream {
		return refuse(http.StatusUnsupportedMediaType, "the Content-Type must be %s", offsetStream)
	}
	offset, ok := parseSize(req.Header.Get(uploadOffset))
	if !ok {
		return refuse(statusBadRequest, "Upload-Offset is missing, or is not a number of bytes")
	}
	if u.number < 0 {
		return refuse(http.StatusForbidden, "a concatenated upload cannot be changed")
	}
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	if offset != u.offset {
		w.Header().Set(uploadOffset, strconv.FormatInt(u.offset, 10))
		return refuse(statusConflict, "the upload has %d bytes, not %d", u.offset, offset)
	}
	if err := s.tusSetLength(req); err != nil {
		return err
	}
	if err := r.tusReceive(req, s); err != nil {
		return err
	}
	if err := s.finishAtLength(); err != nil {
		return err
	}
	r.tusState(w, u)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tusSetLength takes the length of an upload from a request after its creation.
func (s *session) tusSetLength(req *http.Request) error {
	text := req.Header.Get(uploadLength)
	if text == "" {
		return nil
	}
	length, ok := parseSize(text)
	switch {
	case !ok:
		return refuse(statusBadRequest, "Upload-Length is not a number of bytes")
	case s.u.length >= 0 && s.u.length != length:
		return refuse(statusBadRequest, "the upload has the length %d, which does not change", s.u.length)
	case s.u.length >= 0:
		return nil
	case length >= s.u.offset && req.ContentLength > length-s.u.offset: // a refused request does not set it
		return errTooLong
	}
	return s.u.setLength(length)
}

func (r *tusReceiver) tusReceive(req *http.Request, s *session) error {
	sum, err := parseChecksum(req.Header.Get(uploadChecksum))
	if err != nil {
		return err
	}
	_, trailer := req.Trailer[uploadChecksum] // net/http has the names that the request announces
	if trailer && sum != nil {
		return refuse(statusBadRequest, "Upload-Checksum is a header or a trailer of a request, not both")
	}
	return r.receiveAll(req, &intake{session: s, body: req.Body, sum: sum, trailer: trailer})
}

// finishAtLength finishes an upload that has all of its bytes, unless it is a part.
func (s *session) finishAtLength() error {
	if s.u.partial || s.u.length < 0 || s.u.offset != s.u.length {
		return nil
	}
	return s.u.file.finish(s.u)
}

// tusState sets the headers that tell the state of an upload. The caller must be its
// writer.
func (r *tusReceiver) tusState(w http.ResponseWriter, u *upload) {
	f := u.file
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set(uploadOffset, strconv.FormatInt(u.offset, 10))
	if !f.renamed {
		w.Header().Set(uploadExpires, f.touched.Add(r.cfg.Expiry).UTC().Format(http.TimeFormat))
	}
}
