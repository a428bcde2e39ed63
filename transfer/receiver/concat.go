package receiver

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/stintgo/stint/internal/clock"
)

// tusConcat makes one file of parts. A client that has lost the answer may ask again: it
// gets the same one.
func (r *tusReceiver) tusConcat(w http.ResponseWriter, parts []string, meta map[string]string) error {
	first, err := r.find(parts[0])
	if err != nil {
		return err
	}
	f := first.file
	f.finishing.Lock()
	u, err := f.join(parts, meta)
	f.finishing.Unlock()
	if err != nil {
		return err
	}
	if err := f.announce(r.ctx); err != nil {
		return err
	}
	w.Header().Set("Location", r.location(u))
	w.Header().Set(uploadOffset, strconv.FormatInt(u.length, 10))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// join publishes the file, whose first lane is the first of the parts. Lanes of a group
// are in place. Other parts are files of their own: they are appended and removed, one
// by one. The caller must hold finishing.
func (f *file) join(parts []string, meta map[string]string) (*upload, error) {
	f.mu.Lock()
	concat, final, published := f.concat, f.final, f.publish != nil
	f.mu.Unlock()
	if concat != nil && !slices.Equal(concat.Parts, parts) || concat == nil && published {
		return nil, refuse(statusConflict, "the parts have been concatenated in another way")
	}
	if f.isPublished() {
		return final, nil
	}
	f.mu.Lock()
	err := f.use()
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	defer f.release()
	if concat == nil {
		if concat, err = f.beginConcat(parts, meta); err != nil {
			return nil, err
		}
		final = f.final
	}
	if err := concat.arrived(); err != nil {
		return nil, err
	}
	if err := concat.absorb(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	final.offset = final.length
	f.mu.Unlock()
	return final, publication{f, final}.run()
}

// beginConcat checks the parts, and journals that the file is going to have them.
func (f *file) beginConcat(parts []string, meta map[string]string) (c *concatenation, err error) {
	s := f.store
	s.groupsMu.Lock() // two concatenations do not share parts
	defer s.groupsMu.Unlock()
	rec := concatRecord{Final: laneRecord{ID: newID(), Metadata: meta}, Parts: parts}
	files := map[*file]bool{}
	defer func() {
		if err != nil {
			unpin(files)
		}
	}()
	end := int64(0)
	for i, id := range parts {
		u, err := s.find(id)
		if err != nil {
			return nil, err
		}
		if u.file.rec.Group != f.rec.Group {
			return nil, refuse(statusBadRequest, "part %d belongs to another group", i+1)
		}
		if (u.file == f) != (f.rec.Group != "" || i == 0) || files[u.file] || f.rec.Group != "" && u.start != end {
			return nil, refuse(statusBadRequest, "part %d does not follow the one before it", i+1)
		}
		length, err := u.whole(i == 0, u.file != f)
		if err != nil {
			return nil, err
		}
		if u.file != f {
			files[u.file] = true
		}
		end += length
		rec.Ends = append(rec.Ends, end)
	}
	if f.rec.Group != "" && end != f.rec.Total {
		return nil, refuse(statusBadRequest, "the parts have %d of the file's %d bytes", end, f.rec.Total)
	}
	if s.cfg.MaxSize > 0 && end > s.cfg.MaxSize {
		return nil, s.tooLarge()
	}
	rec.Final.Length = end
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return nil, errUnknown
	}
	if err := f.append(record{Concat: &rec}); err != nil {
		return nil, err
	}
	f.concat, f.touched = f.newConcatenation(rec), clock.Now()
	f.final = f.newUpload(rec.Final, -1)
	s.mu.Lock()
	s.uploads[f.final.id] = f.final
	s.mu.Unlock()
	return f.concat, nil
}

// unpin lets files expire and be cancelled that were parts of a concatenation. Their mutexes may be taken under that of
// the file that takes them, which they never wait for.
func unpin(files map[*file]bool) {
	for f := range files {
		f.mu.Lock()
		f.pinned = false
		f.mu.Unlock()
	}
}

// whole returns the length of a part, which must be complete and must not be used by
// another concatenation. If pin, the file of the part cannot be cancelled from then on.
func (u *upload) whole(first, pin bool) (length int64, err error) {
	f := u.file
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.gone:
		return 0, errUnknown
	case !u.partial:
		return 0, refuse(statusBadRequest, "upload %s is not a partial one", u.id)
	case u.length < 0 || u.offset != u.length:
		return 0, refuse(statusConflict, "part %s has only %d of its %d bytes", u.id, u.offset, u.length)
	case f.pinned || (f.concat != nil && !first) || u.writer != nil:
		return 0, refuse(statusConflict, "part %s is in use", u.id)
	}
	f.pinned = pin
	return u.length, nil
}

// concatenation is the making of one file of parts. The lanes of a group are in place from the
// beginning; other parts are files of their own, which are appended to the first one and removed, one by one.
// Its record is in the journal before the first part is taken, so that the same request continues after an
// error or a crash. The caller of its methods must hold finishing of the file, except for unpin.
type concatenation struct {
	concatRecord // does not change

	file     *file // the first part, or the group
	absorbed int   // parts that the file has, all synced; guarded by file.mu, and changed under finishing only
}

// newConcatenation returns a concatenation of which the file has what it begins with.
func (f *file) newConcatenation(rec concatRecord) *concatenation {
	c := &concatenation{concatRecord: rec, file: f, absorbed: 1}
	if f.rec.Group != "" {
		c.absorbed = len(rec.Parts)
	}
	return c
}

// others returns the IDs of the parts that were files of their own.
func (c *concatenation) others() []string {
	if c.file.rec.Group != "" {
		return nil
	}
	return c.Parts[1:]
}

// arrived checks that the file's own lanes and the parts that it is going to absorb are
// complete: a loss of power may have cost bytes of them since the concatenation began. Their
// client may send these again.
func (c *concatenation) arrived() error {
	if err := c.file.arrived(); err != nil {
		return err
	}
	for _, id := range c.Parts[c.absorbed:] {
		part, err := c.file.store.find(id)
		if err != nil {
			return err
		}
		if err := part.file.arrived(); err != nil {
			return err
		}
	}
	return nil
}

// absorb appends the parts that the file does not have yet. Each is durable in the file
// before it is removed.
func (c *concatenation) absorb() error {
	f := c.file
	for i := c.absorbed; i < len(c.Parts); i++ {
		part, err := f.store.find(c.Parts[i])
		if err != nil {
			return err
		}
		from := c.Ends[i-1]
		if err := f.copyFrom(f.store.ctx, part.file.dataName, from, c.Ends[i]-from); err != nil {
			return err
		}
		f.mu.Lock()
		err = f.append(record{Absorb: i + 1})
		if err == nil {
			err = f.disk.sync(f.log)
		}
		if err == nil {
			c.absorbed, f.touched = i+1, clock.Now()
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
		if err := part.file.absorbedBy(f, c.Ends[i]); err != nil {
			return err
		}
	}
	return nil
}

// absorbedBy removes a part that is in another file, which has size bytes now.
func (f *file) absorbedBy(whole *file, size int64) error {
	f.mu.Lock()
	err := f.removeLocked()
	f.mu.Unlock()
	f.store.quota.set(whole, size)
	return err
}

// resume reserves the parts of a concatenation that a former process has begun: the
// client's next request for it continues. What is in the file already is removed.
func (c *concatenation) resume() error {
	f := c.file
	for i, id := range c.others() {
		u, err := f.store.find(id)
		if err != nil {
			continue // removed
		}
		if i+1 >= c.absorbed && f.publish == nil {
			u.file.pinned = true
			continue
		}
		if err := u.file.absorbedBy(f, c.Ends[i+1]); err != nil {
			return err
		}
	}
	if len(c.others()) > 0 && f.publish == nil {
		f.store.quota.set(f, c.Ends[c.absorbed-1])
	}
	return nil
}

// unpin lets the other parts expire and be cancelled: the concatenation is given up. The caller must hold mu of the
// file.
func (c *concatenation) unpin() {
	files := map[*file]bool{}
	for _, id := range c.others() {
		if u, err := c.file.store.find(id); err == nil {
			files[u.file] = true
		}
	}
	unpin(files)
}
