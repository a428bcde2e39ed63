package upload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/stintgo/stint/transfer/receiver"
	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"
	"golang.org/x/exp/slog"

	"github.com/stintgo/stint/bench/measure"
)

// server is a server of uploads at /files/.
type server struct {
	handler http.Handler
	close   func() error
}

// connect starts a server in a directory of its own, for one sample, and returns its client.
func (s *Systems) connect(st *measure.Stage, start maker) (*client, error) {
	dir, err := os.MkdirTemp(s.dir, "uploads-")
	if err != nil {
		return nil, err
	}
	st.Cleanup(func() { _ = os.RemoveAll(dir) })
	made, err := start(dir)
	if err != nil {
		return nil, err
	}
	front := httptest.NewServer(made.handler)
	st.Cleanup(func() {
		front.Close()
		_ = made.close()
	})
	return &client{http: front.Client(), url: front.URL + "/files/", source: s.source}, nil
}

func newStint(dir string) (*server, error) {
	r, err := receiver.Open(dir, receiver.Config{})
	if err != nil {
		return nil, err
	}
	return &server{r, r.Close}, nil
}

func newTusd(dir string) (*server, error) {
	composer := handler.NewStoreComposer()
	filestore.New(dir).UseIn(composer)
	h, err := handler.NewHandler(handler.Config{
		BasePath: "/files/", StoreComposer: composer, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	return &server{http.StripPrefix("/files/", h), func() error { return nil }}, nil
}

// newBare starts a server that writes the body of a PUT to a file, syncs it if synced is set,
// and compares its SHA-256 with a header if hashed is set.
func newBare(synced, hashed bool) maker {
	return func(dir string) (*server, error) {
		return &server{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := keep(filepath.Join(dir, filepath.Base(r.URL.Path)), r, synced, hashed); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}), func() error { return nil }}, nil
	}
}

// bufferSize is that of the buffer of a bare server.
const bufferSize = 256 << 10

func keep(path string, r *http.Request, synced, hashed bool) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var to io.Writer = struct{ io.Writer }{f} // without ReadFrom, so that the buffer is used
	var sum hash.Hash
	if hashed {
		sum = sha256.New()
		to = io.MultiWriter(to, sum)
	}
	if _, err := io.CopyBuffer(to, r.Body, make([]byte, bufferSize)); err != nil {
		return err
	}
	if hashed && hex.EncodeToString(sum.Sum(nil)) != r.Header.Get("Sha256") {
		return fmt.Errorf("the SHA-256 of %s differs", path)
	}
	if synced {
		return f.Sync()
	}
	return nil
}
