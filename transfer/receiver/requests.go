package receiver

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"path"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
)

// requests is what the protocols share: the steps of a request on the store, under the limits of the
// configuration.
type requests struct{ *store }

// single makes a file with one lane. If the lane is not a part and its metadata has a token, and an earlier upload with
// this token and the same key is known, finished or not, single returns that instead. The caller must release the file.
func (r *requests) single(req *http.Request, lane laneRecord) (*upload, error) {
	rec := r.fileRecord(req, lane.Length)
	if token, ok := lane.Metadata[metaToken]; ok && !lane.Partial {
		if !isGroup(token) {
			return nil, refuse(statusBadRequest, "the metadata %q must be 16 to 64 letters, digits, - and _", metaToken)
		}
		rec.Group = rec.Key + "\n" + tokenGroup(token)
		mu := &r.tokenMu[maphash.String(r.seed, token)%uint64(len(r.tokenMu))]
		mu.Lock()
		defer mu.Unlock()
		if u, err := r.known(rec); !errors.Is(err, errUnknown) {
			return u, err
		}
	}
	f, err := r.create(lane.ID, rec, &lane)
	if err != nil {
		return nil, err
	}
	return f.lanes[0], nil
}

// tokenGroup is the name of the group of a file with a token. It is neither that of a [place] nor a [plainGroup].
func tokenGroup(token string) string { return "token/" + token }

// known returns the upload of the group of rec, and makes the caller a user of its file.
func (r *requests) known(rec fileRecord) (*upload, error) {
	r.mu.Lock()
	f := r.groups[rec.Group]
	r.mu.Unlock()
	if f == nil {
		return nil, errUnknown
	}
	if f.rec.Total != rec.Total {
		return nil, refuse(statusConflict, "the upload with this %s was created with another length", metaToken)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lanes.first(), f.hold()
}

func (r *requests) fileRecord(req *http.Request, total int64) fileRecord {
	tier := r.cfg.Priority(req)
	if !tier.Valid() {
		tier = stint.Normal
	}
	return fileRecord{Total: total, Key: r.cfg.Key(req), Priority: tier, Created: clock.Now().UTC()}
}

// group returns the file of a group, which it makes if there is none. The caller must
// release it.
func (r *requests) group(req *http.Request, name string, total int64) (*file, error) {
	rec := r.fileRecord(req, total)
	rec.Group = rec.Key + "\n" + name
	r.groupsMu.Lock() // so that a group gets one file
	defer r.groupsMu.Unlock()
	r.mu.Lock()
	f := r.groups[rec.Group]
	r.mu.Unlock()
	if f == nil || f.isPublished() {
		return r.create(newID(), rec, nil)
	}
	if f.rec.Total != total {
		return nil, refuse(statusConflict, "the file of this group has %d bytes", f.rec.Total)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone || f.renamed {
		return nil, refuse(statusConflict, "the file of this group has just been finished or removed; try again")
	}
	return f, f.use()
}

// receiveAll is receive, which refuses a body that is known to be too long before it
// begins.
func (r *requests) receiveAll(req *http.Request, in *intake) error {
	u := in.u
	if u.file.isPublished() { // the client may have lost the answer to its last request
		return in.readNothing(req)
	}
	if n := req.ContentLength; n > 0 {
		most := u.length
		if most < 0 && r.cfg.MaxSize > 0 {
			most = r.cfg.MaxSize
		}
		if most >= 0 && n > most-u.offset {
			return errTooLong
		}
	}
	u.watchSHA256()
	return r.receive(req, in)
}

// remove cancels an upload, in all protocols.
func (r *requests) remove(w http.ResponseWriter, req *http.Request, u *upload) error {
	s, err := r.take(w, req, u)
	if err != nil {
		return err
	}
	defer s.end()
	if err := u.cancel(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// location returns the path of an upload. It is without a host, which a server behind a
// proxy does not know.
func (r *requests) location(u *upload) string { return path.Join(r.cfg.Path, u.id) }

// limits returns the Upload-Limit of an upload, or of all if there is none.
func (r *requests) limits(u *upload) string {
	text := ""
	if r.cfg.MaxSize > 0 {
		text = fmt.Sprintf("max-size=%d, ", r.cfg.MaxSize)
	}
	age := r.cfg.Expiry
	if u != nil {
		age = max(u.file.expiresIn(), 0)
	}
	return fmt.Sprintf("%smax-age=%d", text, int64(age.Seconds()))
}
