package receiver

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// afterOpen is how long an unfinished upload stays after Open at least: its client could not continue before, and the
// clock of the machine may be ahead until it is set.
const afterOpen = time.Hour

// errNewer is the error of a journal that a newer version of this package has written.
var errNewer = errors.New("use the program that has written it")

// load reads all journals, and removes what none of them names. An upload that cannot be restored, as on a full disk or
// one with bad blocks, is logged, and its files are kept for the next Open: the others must not wait for it.
func (s *store) load() error {
	entries, err := os.ReadDir(s.work)
	if err != nil {
		return err
	}
	kept := map[string]bool{lockFile: true}
	for _, e := range entries {
		id, isLog := strings.CutSuffix(e.Name(), logSuffix)
		if !isLog || !isID(id) {
			continue
		}
		err := s.loadFile(id)
		if errors.Is(err, errNewer) {
			return fmt.Errorf("upload %s: %w", id, err)
		}
		if err != nil {
			s.cfg.Logger.Error("an upload cannot be continued; its files are kept for the next start",
				slog.String("upload", id), slog.Any("error", err))
			kept[id], kept[id+logSuffix] = true, true
		}
	}
	for f := range s.files {
		if f.concat == nil {
			continue
		}
		if err := f.concat.resume(); err != nil {
			s.cfg.Logger.Error("a part that is in another file cannot be removed", slog.String("upload", f.id),
				slog.Any("error", err))
		}
	}
	for f := range s.files {
		kept[filepath.Base(f.dataName)], kept[filepath.Base(f.logName)] = true, true
	}
	for _, e := range entries {
		id := strings.TrimSuffix(strings.TrimSuffix(e.Name(), freshSuffix), logSuffix)
		if !kept[e.Name()] && isID(id) {
			if err := s.disk.remove(filepath.Join(s.work, e.Name())); err != nil {
				s.cfg.Logger.Error("what an upload has left cannot be removed", slog.Any("error", err))
			}
		}
	}
	return nil
}

// loadFile restores a file from its journal. A file that is not registered is removed by
// load.
func (s *store) loadFile(id string) error {
	name := filepath.Join(s.work, id+logSuffix)
	log, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	records, end, err := readJournal(log)
	if err != nil {
		return err
	}
	h := history{file: s.newFile(id, fileRecord{}), chunks: map[int][]chunk{}}
	h.logSize, h.touched = end, info.ModTime()
	if least := clock.Now().Add(min(afterOpen, s.cfg.Expiry) - s.cfg.Expiry); h.touched.Before(least) {
		h.touched = least
	}
	for _, rec := range records {
		h.apply(rec)
	}
	if h.version > journalVersion {
		return fmt.Errorf("the journal has the version %d, and this program reads versions up to %d: %w",
			h.version, journalVersion, errNewer)
	}
	torn, err := isTorn(log, end)
	if err != nil || torn && h.empty() {
		return err // the creation of the upload was not completed
	}
	if !torn || !h.valid() {
		return s.setAside(id)
	}
	if err := log.Truncate(end); err != nil {
		return err
	}
	// The reading of a torn line must not make the upload younger or older.
	if err := os.Chtimes(name, time.Time{}, info.ModTime()); err != nil {
		return err
	}
	return h.restore()
}

// isTorn reports whether what follows the records of a journal, which end at an offset, is
// nothing or one line without its end, which a crash can leave. A line that has its end was
// damaged later: it and the lines after it may be of records that count.
func isTorn(log io.ReaderAt, end int64) (bool, error) {
	rest := bufio.NewReader(io.NewSectionReader(log, end, math.MaxInt64-end))
	for {
		_, err := rest.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case errors.Is(err, bufio.ErrBufferFull): // a long line
		default:
			return false, err
		}
	}
}

// setAside gives the data and the journal of an upload other names, under which nothing
// touches them: its journal cannot be read, but a person may. The journal is the last, so that a
// crash in between leaves no data that is removed.
func (s *store) setAside(id string) error {
	s.cfg.Logger.Error("the journal of an upload is damaged; its files are kept with another suffix",
		slog.String("upload", id), slog.String("suffix", damagedSuffix))
	for _, name := range []string{id, id + logSuffix} {
		name = filepath.Join(s.work, name)
		if err := s.disk.rename(name, name+damagedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// chunk is a range of a lane and what its bytes are.
type chunk struct {
	from, to int64
	crc      uint32
}

// history is what a journal says, record by record.
type history struct {
	*file
	version int
	boot    string
	chunks  map[int][]chunk // by lane
	bad     bool
}

func (h *history) valid() bool {
	return !h.bad && h.rec.Created != time.Time{} && !h.empty()
}

// empty reports whether the journal names no upload. The receipt of a file of the plain protocol
// names the whole alone, because its chunks have no IDs.
func (h *history) empty() bool { return !h.bad && len(h.lanes) == 0 && h.final == nil }

func (h *history) apply(rec record) {
	h.version = max(h.version, rec.Version)
	if rec.File != nil {
		h.rec = *rec.File
	}
	if rec.Boot != "" {
		h.boot = rec.Boot
	}
	if rec.Lane != nil {
		h.lanes = append(h.lanes, h.newUpload(*rec.Lane, len(h.lanes)))
	}
	if rec.Length != nil {
		if u := h.lane(rec.Length.Lane); u != nil {
			u.length = rec.Length.Length
		}
	}
	if rec.Reach != nil {
		h.reach(*rec.Reach)
	}
	if rec.Drop != nil {
		if u := h.lane(*rec.Drop); u != nil {
			h.lanes[u.number] = nil
			delete(h.chunks, u.number)
		}
	}
	if rec.Concat != nil && len(rec.Concat.Parts) > 0 && len(rec.Concat.Parts) == len(rec.Concat.Ends) {
		h.concat = h.newConcatenation(*rec.Concat)
		h.final = h.newUpload(rec.Concat.Final, -1)
	}
	if h.concat != nil && rec.Absorb > h.concat.absorbed {
		h.concat.absorbed = min(rec.Absorb, len(h.concat.Parts))
	}
	if rec.Publish != nil {
		h.published(*rec.Publish)
	}
	if rec.Done != nil {
		h.announced, h.touched = true, *rec.Done
	}
}

func (h *history) lane(number int) *upload {
	if number < 0 || number >= len(h.lanes) || h.lanes[number] == nil {
		h.bad = true
		return nil
	}
	return h.lanes[number]
}

func (h *history) reach(rec reachRecord) {
	u := h.lane(rec.Lane)
	if u == nil {
		return
	}
	if rec.To > u.offset {
		h.chunks[rec.Lane] = append(h.chunks[rec.Lane], chunk{from: u.offset, to: rec.To, crc: rec.CRC})
	}
	for chunks := h.chunks[rec.Lane]; len(chunks) > 0 && chunks[len(chunks)-1].to > rec.To; {
		chunks = chunks[:len(chunks)-1]
		h.chunks[rec.Lane] = chunks
	}
	if rec.To < u.offset {
		h.fellBack()
	}
	u.offset = rec.To
}

// fellBack says that a lane has lost bytes: the file is not complete, whatever its journal
// said of its name.
func (h *history) fellBack() {
	h.publish = nil
	switch {
	case h.concat == nil:
		h.final = nil
	case h.final != nil:
		h.final.offset = 0
	}
}

// published: a file that has its name is complete, whatever its journal still says of
// the way to it.
func (h *history) published(rec publishRecord) {
	h.publish = &rec
	if rec.As != nil {
		h.final = h.newUpload(*rec.As, -1)
	}
	if h.final != nil {
		h.final.length, h.final.offset = rec.Size, rec.Size
	}
	for u := range h.lanes.all() {
		if u.length < 0 {
			u.length = rec.Size
		}
		u.offset = u.length
	}
}

// restore brings a file into the state that its journal says.
func (h *history) restore() error {
	f := h.file
	_, err := os.Lstat(f.dataName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	there := err == nil
	switch {
	case f.publish != nil && !there:
		f.renamed = true
	case !there:
		return nil // it was being cancelled
	}
	if f.renamed {
		f.store.register(f)
		return nil
	}
	if err := h.verify(); err != nil {
		return err
	}
	if u := f.lanes.first(); u != nil && u.oneRequest && f.publish == nil {
		return nil // its client knows no ID, and sends it again
	}
	f.store.register(f)
	f.store.quota.restore(f, h.lanes.count(), h.bytes())
	f.found = f.publish != nil || h.isComplete()
	f.publishFound()
	return nil
}

// verify compares the data with the journal if the machine was restarted, and drops what is not kept in part.
func (h *history) verify() error {
	f := h.file
	if err := f.storage.use(); err != nil {
		return err
	}
	defer f.release()
	if boot := bootID(); boot == "" || boot != h.boot {
		if err := h.verifyChunks(boot); err != nil {
			return err
		}
	}
	for i, u := range f.lanes {
		if u != nil && u.id == "" && u.offset != u.length && f.publish == nil {
			f.lanes[i] = nil // chunks of the plain protocol are kept whole or not at all
			f.appendSoon(record{Drop: &i})
		}
		if u != nil && u.length < 0 { // bytes of requests that were not kept
			if err := f.data.Truncate(u.offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// isComplete reports whether the last byte has arrived of an upload that this finishes:
// its client may have seen that, and then does not ask again.
func (h *history) isComplete() bool {
	if len(h.lanes) != 1 || h.lanes[0] == nil || h.concat != nil {
		return false
	}
	u := h.lanes[0]
	return !u.partial && !u.ordered && u.offset == u.length
}

// bytes returns how many bytes of the quotas the file takes.
func (h *history) bytes() int64 {
	bytes := max(h.rec.Total, 0)
	for u := range h.lanes.all() {
		bytes = max(bytes, u.start+max(u.length, u.offset))
	}
	return bytes
}

// verifyChunks compares the data with the journal, and lets each lane fall back to its
// first chunk that the disk does not have: after a loss of power written pages may be
// missing. The caller must be a user of the file.
func (h *history) verifyChunks(boot string) error {
	f := h.file
	f.mu.Lock()
	defer f.mu.Unlock()
	for number, chunks := range h.chunks {
		u := f.lanes[number]
		for _, c := range chunks {
			crc := crc32.New(castagnoli)
			_, err := io.Copy(crc, io.NewSectionReader(f.data, u.start+c.from, c.to-c.from))
			if err != nil {
				return err
			}
			if crc.Sum32() == c.crc {
				continue
			}
			u.offset = c.from
			h.fellBack()
			f.appendSoon(record{Reach: &reachRecord{Lane: number, To: c.from}})
			break
		}
	}
	if boot == "" {
		return nil
	}
	if err := f.disk.sync(f.data); err != nil {
		return err
	}
	f.appendSoon(record{Boot: boot})
	return nil
}
