package receiver

import (
	"fmt"
	"net/http"
	"path"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
)

// requests is what the protocols share: the steps of a request on the store, under the limits of the
// configuration.
type requests struct{ *store }

// single makes a file with one lane.
func (r *requests) single(req *http.Request, lane laneRecord) (*upload, error) {
	f, err := r.create(lane.ID, r.fileRecord(req, "", lane.Length), &lane)
	if err != nil {
		return nil, err
	}
	return f.lanes[0], nil
}

func (r *requests) fileRecord(req *http.Request, group string, total int64) fileRecord {
	tier := r.cfg.Priority(req)
	if !tier.Valid() {
		tier = stint.Normal
	}
	return fileRecord{Group: group, Total: total, Key: r.cfg.Key(req), Priority: tier, Created: clock.Now().UTC()}
}

// group returns the file of a group, which it makes if there is none. The caller must
// release it.
func (r *requests) group(req *http.Request, name string, total int64) (*file, error) {
	rec := r.fileRecord(req, "", total)
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
		if req.ContentLength != 0 {
			return errTooLong
		}
		return nil
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
