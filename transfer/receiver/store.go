package receiver

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stintgo/stint/internal/clock"
)

const (
	uploadsDir = ".uploads" // in the directory of the receiver
	lockFile   = "lock"     // in uploadsDir
	logSuffix  = ".log"
	// damagedSuffix is of the data and the journal of an upload whose journal cannot be read.
	damagedSuffix = ".damaged"
)

// store has the files of a directory and their uploads. It is safe for concurrent use.
type store struct {
	dir  string // of finished files
	work string // of unfinished uploads
	cfg  Config
	disk disk
	lock *os.File

	ctx    context.Context //nolint:containedctx // of Finished: the life of the receiver
	cancel context.CancelFunc

	quota    quota
	groupsMu sync.Mutex // held while a group is looked up and made; taken before all others
	// tokenMu is the same for files with a token, one for many hashes of tokens: a disk may take
	// long to make a file.
	tokenMu [64]sync.Mutex
	seed    maphash.Seed // of these hashes

	// mu guards what follows. It is taken after the mutex of a file, never before.
	mu      sync.Mutex
	uploads map[string]*upload // by ID
	files   map[*file]bool     // whether each is finished
	groups  map[string]*file   // the latest of each fileRecord.Group
	// leftovers are files that the disk has failed to remove.
	leftovers map[*file]struct{}
}

func newStore(dir string, cfg Config) *store {
	ctx, cancel := context.WithCancel(context.Background())
	return &store{
		dir: dir, work: filepath.Join(dir, uploadsDir), cfg: cfg, disk: cfg.disk, ctx: ctx, cancel: cancel,
		quota: quota{
			total: cfg.Quota, perKey: cfg.KeyQuota, uploadsMax: cfg.uploadsMax, byKey: map[string]int64{},
		},
		uploads: map[string]*upload{}, files: map[*file]bool{}, groups: map[string]*file{},
		leftovers: map[*file]struct{}{},
		seed:      maphash.MakeSeed(),
	}
}

// open takes the directory for this process, and restores what a former one has left.
func (s *store) open() error {
	if err := os.MkdirAll(s.work, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.work, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err = lock(f); err == nil {
		err = s.load()
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	s.lock = f
	return nil
}

// find returns the upload with an ID.
func (s *store) find(id string) (*upload, error) {
	s.mu.Lock()
	u := s.uploads[id]
	s.mu.Unlock()
	if u == nil {
		return nil, errUnknown
	}
	return u, nil
}

// all returns all files.
func (s *store) all() []*file {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*file, 0, len(s.files))
	for f := range s.files {
		all = append(all, f)
	}
	return all
}

// newFile returns a file that has nothing, and is not known to the store.
func (s *store) newFile(id string, rec fileRecord) *file {
	name := filepath.Join(s.work, id)
	return &file{
		store: s, id: id, rec: rec, touched: clock.Now(),
		storage: storage{disk: s.disk, dataName: name, logName: name + logSuffix},
	}
}

// create makes a file, with one lane or, if lane is nil, with none: data, then journal, so that a crash
// leaves data without a journal at most. The file has one user. If it fails, both are closed before
// they are removed, as a full disk would keep their space otherwise.
func (s *store) create(id string, rec fileRecord, lane *laneRecord) (*file, error) {
	f := s.newFile(id, rec)
	if s.cfg.MaxSize > 0 && rec.Total > s.cfg.MaxSize {
		return nil, s.tooLarge()
	}
	if lane != nil {
		if err := s.quota.count(f); err != nil {
			return nil, err
		}
		f.lanes = lanes{f.newUpload(*lane, 0)}
	}
	size := max(rec.Total, 0)
	if err := s.quota.reserve(f, size); err != nil {
		s.quota.release(f)
		return nil, err
	}
	first := record{Version: journalVersion, Boot: bootID(), File: &f.rec, Lane: lane}
	if err := f.create(size, first); err != nil {
		f.close()
		return nil, errors.Join(err, f.removeLocked())
	}
	s.register(f)
	return f, nil
}

// register makes the file and its uploads known.
func (s *store) register(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f] = f.renamed
	old := s.groups[f.rec.Group]
	if f.rec.Group != "" && (old == nil || !f.renamed || s.files[old] && old.rec.Created.Before(f.rec.Created)) {
		s.groups[f.rec.Group] = f
	}
	for u := range f.uploads() {
		if u.id != "" {
			s.uploads[u.id] = u
		}
	}
}

// unregister is the opposite of register.
func (s *store) unregister(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, f)
	if s.groups[f.rec.Group] == f {
		delete(s.groups, f.rec.Group)
	}
	for u := range f.uploads() {
		delete(s.uploads, u.id)
	}
}

// keepLeftover notes whether the disk has failed to remove a file.
func (s *store) keepLeftover(f *file, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed {
		s.leftovers[f] = struct{}{}
	} else {
		delete(s.leftovers, f)
	}
}

// allLeftovers returns the files that the disk has failed to remove.
func (s *store) allLeftovers() []*file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.leftovers))
}

func (s *store) tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, "an upload may have %d bytes", s.cfg.MaxSize)
}
