package receiver

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Names of the IETF draft "Resumable Uploads for HTTP", draft-ietf-httpbis-resumable-upload,
// whose interop versions 6 (which URLSession of iOS has) and 8 differ here only in the
// Content-Type, which version 6 may omit.
const (
	draftVersion   = "Upload-Draft-Interop-Version"
	uploadComplete = "Upload-Complete"
	uploadLimit    = "Upload-Limit"
	partialUpload  = "application/partial-upload"

	draftOld, draftNew = "6", "8"

	// progressEvery is the minimum time between two interim answers with the offset. A client
	// that reads no answer before it has sent its body has a buffer for hours of them.
	progressEvery = time.Second

	// statusResumption is "104 Upload Resumption Supported".
	statusResumption = 104

	problemTypes           = "https://iana.org/assignments/http-problem-types#"
	problemOffset          = "mismatching-upload-offset"
	problemCompleted       = "completed-upload"
	problemLength          = "inconsistent-upload-length"
	booleanNo              = "?0"
	booleanYes             = "?1"
	noLength         int64 = -1
)

// isDraft reports whether a request is one of the IETF draft.
func isDraft(req *http.Request) bool {
	return req.Header.Get(draftVersion) != "" || req.Header.Get(uploadComplete) != ""
}

// draftReceiver answers requests of the IETF draft.
type draftReceiver struct{ *requests }

// serve answers a request of the IETF draft. rest is the path after the one of the
// configuration.
func (r *draftReceiver) serve(w http.ResponseWriter, req *http.Request, rest string) error {
	version := req.Header.Get(draftVersion)
	switch version {
	case draftOld, draftNew:
		w.Header().Set(draftVersion, version)
	case "": // the version without a number; it gets no interim answer
	default:
		return refuse(statusBadRequest, "%s must be %s or %s", draftVersion, draftNew, draftOld)
	}
	switch {
	case req.Method == http.MethodPost && rest == "", req.Method == http.MethodPut:
		return r.draftCreate(w, req, rest)
	case req.Method == http.MethodGet:
		return r.serveFile(w, req, rest)
	}
	u, err := r.find(rest)
	if err != nil {
		return err
	}
	switch req.Method {
	case http.MethodHead:
		return r.draftHead(w, req, u)
	case http.MethodPatch:
		return r.draftAppend(w, req, u)
	case http.MethodDelete:
		return r.remove(w, req, u)
	}
	w.Header().Set("Allow", allowedMethods)
	return refuse(http.StatusMethodNotAllowed, "%s is not a method of uploads", req.Method)
}

// draftCreate begins an upload, and receives its content or the beginning of it.
func (r *draftReceiver) draftCreate(w http.ResponseWriter, req *http.Request, name string) error {
	complete, ok := parseBoolean(req.Header.Get(uploadComplete))
	if !ok {
		return refuse(statusBadRequest, "Upload-Complete must be ?0 or ?1")
	}
	meta, err := metadataOf(req)
	if err != nil {
		return err
	}
	if name != "" {
		meta[metaFilename] = name
	}
	length, err := draftLength(req, 0, noLength, complete)
	if err != nil {
		return err
	}
	u, err := r.single(req, laneRecord{ID: newID(), Length: length, Ordered: true, Metadata: meta})
	if err != nil {
		return err
	}
	defer u.file.release()
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	h := w.Header()
	h.Set("Location", r.location(u))
	h.Set(uploadLimit, r.limits(u))
	named := takesInterim(w, req)
	if named {
		w.WriteHeader(statusResumption)
	}
	if err := r.draftReceive(w, req, s, complete); err != nil {
		h.Set(uploadComplete, booleanNo)
		if !named && u.offset == 0 && errorIs[*refusal](err) { // its client does not know it, and creates another
			h.Del("Location")
			err = errors.Join(err, u.cancel())
		}
		return err
	}
	r.draftState(w, u)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// draftLength returns the length of an upload that has offset bytes, from what the
// request says about it, and the length that was known before, or -1.
func draftLength(req *http.Request, offset, known int64, complete bool) (int64, error) {
	length := known
	if given, ok := parseInteger(req.Header.Get(uploadLength)); ok {
		if length >= 0 && length != given {
			return 0, inconsistentLength(length, given)
		}
		length = given
	}
	if complete && req.ContentLength >= 0 {
		given := offset + req.ContentLength
		if length >= 0 && length != given {
			return 0, inconsistentLength(length, given)
		}
		length = given
	}
	if length >= 0 && offset+req.ContentLength > length {
		return 0, inconsistentLength(length, offset+req.ContentLength)
	}
	return length, nil
}

func inconsistentLength(one, another int64) error {
	no := refuse(statusBadRequest, "the length of the upload is %d by one account and %d by another", one, another)
	no.kind = problemLength
	return no
}

// takesInterim reports whether interim answers may be sent: to clients that name the version of the
// draft, as older programs do not expect them.
func takesInterim(w http.ResponseWriter, req *http.Request) bool {
	return w.Header().Get(draftVersion) != "" && req.ProtoAtLeast(1, 1)
}

// draftProgress returns a function that sends the offset of an upload in an interim answer, unless
// it has done so within the interval. It returns nil if the client takes none.
func (r *draftReceiver) draftProgress(w http.ResponseWriter, req *http.Request, u *upload) func() {
	if !takesInterim(w, req) {
		return nil
	}
	last := clock.Now()
	return func() {
		now := clock.Now()
		if now.Sub(last) < r.cfg.interval {
			return
		}
		last = now
		w.Header().Set(uploadOffset, strconv.FormatInt(u.offset, 10))
		w.WriteHeader(statusResumption)
		w.Header().Del(uploadOffset) // the answer may be an error of a later time
	}
}

// draftReceive receives a body, and finishes the upload if it was the last one.
func (r *draftReceiver) draftReceive(w http.ResponseWriter, req *http.Request, s *session, complete bool) error {
	u := s.u
	before := u.offset
	in := &intake{session: s, body: req.Body, progress: r.draftProgress(w, req, u)}
	if err := r.receiveAll(req, in); err != nil {
		if errors.Is(err, errTooLong) && u.length >= 0 {
			return inconsistentLength(u.length, before+req.ContentLength)
		}
		return err
	}
	if !complete {
		return nil
	}
	if u.length < 0 {
		if err := u.setLength(u.offset); err != nil {
			return err
		}
	}
	if u.offset != u.length {
		return inconsistentLength(u.length, u.offset)
	}
	return u.file.finish(u)
}

// draftState sets the headers that tell the state of an upload. The caller must be its
// writer.
func (r *draftReceiver) draftState(w http.ResponseWriter, u *upload) {
	h := w.Header()
	h.Set(uploadComplete, booleanNo)
	if u.file.isPublished() {
		h.Set(uploadComplete, booleanYes)
	}
	h.Set(uploadOffset, strconv.FormatInt(u.offset, 10))
	h.Set(uploadLimit, r.limits(u))
}

func (r *draftReceiver) draftHead(w http.ResponseWriter, req *http.Request, u *upload) error {
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	if u.file.isPublished() { // a client that finds the upload complete does not ask again
		if err := u.file.announce(r.ctx); err != nil {
			return err
		}
	}
	r.draftState(w, u)
	if u.length >= 0 {
		w.Header().Set(uploadLength, strconv.FormatInt(u.length, 10))
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (r *draftReceiver) draftAppend(w http.ResponseWriter, req *http.Request, u *upload) error {
	if kind := req.Header.Get("Content-Type"); kind != partialUpload &&
		(req.Header.Get(draftVersion) != draftOld || kind != "") {
		return refuse(http.StatusUnsupportedMediaType, "the Content-Type must be %s", partialUpload)
	}
	offset, ok := parseInteger(req.Header.Get(uploadOffset))
	complete, alsoOK := parseBoolean(req.Header.Get(uploadComplete))
	if !ok || !alsoOK {
		return refuse(statusBadRequest, "Upload-Offset must be a number of bytes, and Upload-Complete ?0 or ?1")
	}
	if u.number < 0 || u.partial {
		return refuse(statusConflict, "the upload is one of another protocol, and has parts")
	}
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	if err := r.draftContinue(w, req, s, offset, complete); err != nil {
		return err
	}
	r.draftState(w, u)
	if complete {
		w.WriteHeader(http.StatusOK)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

func (r *draftReceiver) draftContinue(
	w http.ResponseWriter, req *http.Request, s *session, offset int64, complete bool,
) error {
	u := s.u
	if u.file.isPublished() && (req.ContentLength > 0 || !u.file.unannounced()) {
		r.draftState(w, u)
		no := refuse(statusBadRequest, "the upload is complete already")
		no.kind = problemCompleted
		return no
	}
	w.Header().Set(uploadComplete, booleanNo)
	if offset != u.offset {
		w.Header().Set(uploadOffset, strconv.FormatInt(u.offset, 10))
		no := refuse(statusConflict, "the upload has %d bytes, not %d", u.offset, offset)
		no.kind = problemOffset
		no.fields = map[string]any{"expected-offset": u.offset, "provided-offset": offset}
		return no
	}
	length, err := draftLength(req, offset, u.length, complete)
	if err != nil {
		return err
	}
	if length != u.length {
		if err := u.setLength(length); err != nil {
			return err
		}
	}
	return r.draftReceive(w, req, s, complete)
}
