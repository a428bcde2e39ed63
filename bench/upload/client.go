package upload

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// client sends files by tus 1.0.0, or by PUT to a bare server. The content of a file is the
// same random MiB again and again.
type client struct {
	http   *http.Client
	url    string // where uploads are created
	source *source
}

const pieceSize = 1 << 20

// source has the content of files, and its SHA-256 by size, since computing one takes as long
// as sending it.
type source struct {
	piece []byte
	sums  sync.Map
}

func newSource() *source {
	s := &source{piece: make([]byte, pieceSize)}
	_, _ = rand.Read(s.piece)
	return s
}

// content reads a number of bytes, from the beginning of a piece.
type content struct {
	piece []byte
	left  int64
}

func (c *content) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	from := int((pieceSize - c.left%pieceSize) % pieceSize)
	n := copy(p[:min(int64(len(p)), c.left)], c.piece[from:])
	c.left -= int64(n)
	return n, nil
}

func (s *source) sum(size int64) (string, error) {
	if sum, ok := s.sums.Load(size); ok {
		return sum.(string), nil //nolint:forcetypeassert // nothing else is stored
	}
	h := sha256.New()
	if _, err := io.Copy(h, &content{s.piece, size}); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	s.sums.Store(size, sum)
	return sum, nil
}

// whole sends a file in one request after its creation.
func whole(c *client, size int64, number int) error {
	at, err := c.create(size, map[string]string{"filename": strconv.Itoa(number)}, "")
	if err != nil {
		return err
	}
	return c.patch(at, size)
}

// hashed is whole with the SHA-256 of the file.
func hashed(c *client, size int64, number int) error {
	sum, err := c.source.sum(size)
	if err != nil {
		return err
	}
	at, err := c.create(size, map[string]string{"filename": strconv.Itoa(number), "sha256": sum}, "")
	if err != nil {
		return err
	}
	return c.patch(at, size)
}

// inParts sends a file in parts at once, and concatenates them. The parts say where they
// belong, which a server may ignore.
func inParts(c *client, size int64, number int) error {
	group, one := rand.Text(), size/parts
	at := make([]string, parts)
	err := several(parts, parts, func(i int) (err error) {
		where := fmt.Sprintf("%s %d %d", group, int64(i)*one, size)
		if at[i], err = c.create(one, map[string]string{"part-of": where}, "partial"); err != nil {
			return err
		}
		return c.patch(at[i], one)
	})
	if err != nil {
		return err
	}
	for i, text := range at {
		u, err := url.Parse(text)
		if err != nil {
			return err
		}
		at[i] = u.Path
	}
	_, err = c.create(-1, map[string]string{"filename": strconv.Itoa(number)}, "final;"+strings.Join(at, " "))
	return err
}

// put sends a file to a bare server.
func put(c *client, size int64, number int) error {
	sum, err := c.source.sum(size)
	if err != nil {
		return err
	}
	body := &content{c.source.piece, size}
	req, err := http.NewRequest(http.MethodPut, c.url+strconv.Itoa(number), body) //nolint:noctx // it ends by itself
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Sha256", sum)
	_, err = c.do(req, http.StatusOK)
	return err
}

// create creates an upload and returns its URL. A size below 0 is not sent.
func (c *client) create(size int64, metadata map[string]string, concat string) (string, error) {
	req, err := http.NewRequest(http.MethodPost, c.url, nil) //nolint:noctx // it ends by itself
	if err != nil {
		return "", err
	}
	var pairs []string
	for key, value := range metadata {
		pairs = append(pairs, key+" "+base64.StdEncoding.EncodeToString([]byte(value)))
	}
	req.Header.Set("Upload-Metadata", strings.Join(pairs, ","))
	if size >= 0 {
		req.Header.Set("Upload-Length", strconv.FormatInt(size, 10))
	}
	if concat != "" {
		req.Header.Set("Upload-Concat", concat)
	}
	answer, err := c.do(req, http.StatusCreated)
	if err != nil {
		return "", err
	}
	at, err := req.URL.Parse(answer.Get("Location"))
	if err != nil {
		return "", err
	}
	return at.String(), nil
}

// patch sends the content of an upload.
func (c *client) patch(at string, size int64) error {
	req, err := http.NewRequest(http.MethodPatch, at, &content{c.source.piece, size}) //nolint:noctx // it ends by itself
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/offset+octet-stream")
	req.Header.Set("Upload-Offset", "0")
	_, err = c.do(req, http.StatusNoContent)
	return err
}

// do makes a request, checks the status of its answer, and returns its header.
func (c *client) do(req *http.Request, want int) (http.Header, error) {
	req.Header.Set("Tus-Resumable", "1.0.0")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	said, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err == nil && res.StatusCode != want {
		err = fmt.Errorf("%s %s: %s: %s", req.Method, req.URL, res.Status, said)
	}
	return res.Header, err
}
