package receiver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// mergeName is the last element of the path that merges chunks.
const mergeName = "merge"

// plainReceiver answers requests of the plain protocol.
type plainReceiver struct{ *requests }

// serve answers the protocol for programs that have no library for another one:
//
//	PUT    PATH<name>                     a whole file
//	PUT    PATH<name>/<offset>?size=<n>   a chunk, in any order and at once with others
//	GET    PATH<name>/                    which chunks have arrived, as JSON
//	POST   PATH<name>/merge               makes the file of them
//	DELETE PATH<name>/                    gives them up
//
// Unlike in the other protocols, an upload is known by its name, among the uploads of the
// key of the request.
func (r *plainReceiver) serve(w http.ResponseWriter, req *http.Request, rest string) error {
	name, what, chunked := strings.Cut(rest, "/")
	if name == "" || cleanName(name) != name {
		return refuse(statusBadRequest, "%.300q cannot be the name of a file", name)
	}
	switch {
	case req.Method == http.MethodPut && !chunked:
		return r.plainPut(w, req, name)
	case req.Method == http.MethodPut:
		return r.plainChunk(w, req, name, what)
	case req.Method == http.MethodPost && what == mergeName:
		return r.plainMerge(w, req, name)
	case req.Method == http.MethodGet && what == "":
		return r.plainList(w, req, name)
	case req.Method == http.MethodDelete && what == "":
		return r.plainCancel(w, req, name)
	}
	return refuse(http.StatusNotFound, "no such call; PUT %s/<offset>?size=<n> sends a chunk", name)
}

// plainPut receives a whole file. Nothing is kept of a body that is cut.
func (r *plainReceiver) plainPut(w http.ResponseWriter, req *http.Request, name string) error {
	meta, err := metadataOf(req)
	if err != nil {
		return err
	}
	meta[metaFilename] = name
	sum, err := contentDigest(req)
	if err != nil {
		return err
	}
	u, err := r.single(req, laneRecord{
		ID: newID(), Length: req.ContentLength, Ordered: true, OneRequest: true, Metadata: meta,
	})
	if err != nil {
		return err
	}
	defer u.file.release()
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	err = r.receiveAll(req, &intake{session: s, body: req.Body, sum: sum, whole: true})
	if err == nil && u.length < 0 {
		err = u.setLength(u.offset)
	}
	if err == nil {
		err = u.file.finish(u)
	}
	if err != nil && !u.file.isPublished() {
		return errors.Join(err, u.cancel())
	}
	status := http.StatusCreated
	if errorIs[*hookError](err) { // the client would send another file; Finished is called again without it
		r.cfg.Logger.Error("the hook of a finished upload failed", slog.String("upload", u.id), slog.Any("error", err))
		status, err = http.StatusAccepted, nil
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", r.location(u))
	w.WriteHeader(status)
	return nil
}

// contentDigest returns the checksum of a Content-Digest, or nil.
func contentDigest(req *http.Request) (*checksum, error) {
	want, err := parseDigest(strings.Join(req.Header.Values("Content-Digest"), ","))
	if want == nil || err != nil {
		return nil, err
	}
	return &checksum{want: want, hash: sha256.New()}, nil
}

// plainGroup is the name of the group of a file of the plain protocol. The groups of tus
// have no slash in their names.
func plainGroup(name string) string { return "/" + name }

func (r *plainReceiver) plainFile(req *http.Request, name string) (*file, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.groups[r.cfg.Key(req)+"\n"+plainGroup(name)]
	if f == nil {
		return nil, refuse(http.StatusNotFound, "no chunks of %s have arrived", name)
	}
	return f, nil
}

// plainChunk receives a chunk: all of it or nothing. A chunk that has arrived already is
// not received again.
func (r *plainReceiver) plainChunk(w http.ResponseWriter, req *http.Request, name, where string) error {
	offset, ok := parseSize(where)
	size, alsoOK := parseSize(req.URL.Query().Get("size"))
	if !ok || !alsoOK {
		return refuse(statusBadRequest, "PUT %s/<offset>?size=<size of the whole file in bytes> sends a chunk", name)
	}
	if req.ContentLength < 0 {
		return refuse(http.StatusLengthRequired, "a chunk needs a Content-Length")
	}
	sum, err := contentDigest(req)
	if err != nil {
		return err
	}
	f, err := r.group(req, plainGroup(name), size)
	if err != nil {
		return err
	}
	defer f.abandon()
	s, err := r.takeChunk(w, req, f, laneRecord{
		Start: offset, Length: req.ContentLength, Partial: true, Metadata: map[string]string{metaFilename: name},
	})
	if err != nil {
		return err
	}
	defer s.end()
	if s.u.offset == s.u.length && s.u.length > 0 {
		if err := s.u.compare(r.ctx, sum); err != nil {
			return err
		}
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if err := r.receiveAll(req, &intake{session: s, body: req.Body, sum: sum, whole: true}); err != nil {
		s.u.drop(s)
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

// compare checks that a chunk that has arrived has the digest of a request, which may be of another file of the same
// name and size. sum is nil if the request has none. The caller must be the writer.
func (u *upload) compare(ctx context.Context, sum *checksum) error {
	if sum == nil {
		return nil
	}
	if err := u.file.copyTo(ctx, sum.hash, u.start, u.start+u.length); err != nil {
		return err
	}
	if !sum.matches(0) {
		return refuse(statusConflict,
			"a chunk with another content has arrived for this range; DELETE %s/ gives all chunks up", u.fileName())
	}
	return nil
}

// takeChunk makes a request the writer of a chunk. The request that wrote the chunk before gives it up if it
// fails or is taken over: then the chunk begins anew.
func (r *plainReceiver) takeChunk(
	w http.ResponseWriter, req *http.Request, f *file, rec laneRecord,
) (*session, error) {
	for {
		u, err := f.addLane(rec)
		if err != nil {
			return nil, err
		}
		s, err := r.take(w, req, u)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, errUnknown) {
			u.drop(nil)
			return nil, err
		}
	}
}

// drop gives a chunk up that has not arrived, so that others may overlap it, unless another request than that
// of by is its writer. by is nil if the caller is not the writer.
func (u *upload) drop(by *session) {
	f := u.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone || u.writer != by || f.lanes[u.number] != u || by == nil && u.offset == u.length {
		return
	}
	f.dropLane(u)
	f.appendSoon(record{Drop: &u.number})
}

// plainMerge publishes the file if all of its chunks have arrived. A client that has lost
// the answer may ask again.
func (r *plainReceiver) plainMerge(w http.ResponseWriter, req *http.Request, name string) error {
	f, err := r.plainFile(req, name)
	if err != nil {
		return err
	}
	meta, err := metadataOf(req)
	if err != nil {
		return err
	}
	meta[metaFilename] = name
	f.finishing.Lock()
	u, err := f.merge(meta)
	f.finishing.Unlock()
	if err != nil {
		return err
	}
	if err := f.announce(r.ctx); err != nil {
		return err
	}
	w.Header().Set("Location", r.location(u))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// merge publishes the chunks. The caller must hold finishing.
func (f *file) merge(meta map[string]string) (*upload, error) {
	if f.isPublished() {
		return f.final, nil
	}
	f.mu.Lock()
	err := f.use()
	done := f.lanes.ranges()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer f.release()
	if f.rec.Total > 0 && !slices.Equal(done, [][2]int64{{0, f.rec.Total}}) {
		return nil, refuse(statusConflict, "of the %d bytes only the ranges %v have arrived", f.rec.Total, done)
	}
	u := f.newUpload(laneRecord{ID: newID(), Length: f.rec.Total, Metadata: meta}, -1)
	u.offset = u.length
	return u, publication{f, u}.run()
}

// plainList answers which ranges have arrived.
func (r *plainReceiver) plainList(w http.ResponseWriter, req *http.Request, name string) error {
	f, err := r.plainFile(req, name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	answer := struct {
		Size     int64      `json:"size"`
		Merged   bool       `json:"merged"`
		Received [][2]int64 `json:"received"` // from, to (exclusive)
	}{f.rec.Total, f.renamed, f.lanes.ranges()}
	f.mu.Unlock()
	if answer.Merged {
		answer.Received = [][2]int64{{0, f.rec.Total}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(answer)
}

// plainCancel gives the chunks up, and ends the requests that send some.
func (r *plainReceiver) plainCancel(w http.ResponseWriter, req *http.Request, name string) error {
	f, err := r.plainFile(req, name)
	if err != nil {
		return err
	}
	if !f.finishing.TryLock() {
		return refuse(statusConflict, "the upload is being finished")
	}
	defer f.finishing.Unlock()
	f.interrupt(errUnknown)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renamed && !f.announced {
		return refuse(statusConflict, "the upload is being finished")
	}
	if err := f.removeLocked(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
