package receiver

import (
	"context"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// serveFile answers GET and HEAD of a finished file by its ID, with ranges. The content
// is not trusted: a browser may save it, but must not show it as a page of this site.
func (r *requests) serveFile(w http.ResponseWriter, req *http.Request, id string) error {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return refuse(http.StatusMethodNotAllowed, "%s is not a method of finished files", req.Method)
	}
	u, err := r.find(id)
	if err != nil {
		return err
	}
	f := u.file
	f.mu.Lock()
	rec, renamed := f.publish, f.renamed
	f.mu.Unlock()
	if !renamed || u.partial {
		return refuse(http.StatusNotFound, "the upload is not finished")
	}
	name := filepath.Join(r.dir, rec.Name)
	content, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for a named pipe
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(http.StatusGone, "the file has been moved or removed since it was uploaded")
	}
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	if !rec.isOf(info) {
		return refuse(http.StatusGone, "the file has been changed, or another one has its name, since it was uploaded")
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": u.fileName()}))
	h.Set("Content-Security-Policy", "sandbox")
	// The client may read slowly, or not at all. The deadline must not be set after the return, when the writer
	// may no longer be used.
	interrupted := make(chan struct{})
	stop := context.AfterFunc(r.ctx, func() {
		defer close(interrupted)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-interrupted
		}
	}()
	http.ServeContent(w, req, "", info.ModTime(), content)
	return nil
}
