//go:build linux

package main_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/s3gateway"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// bucket is a bucket of an S3 server, and uploads to it.
type bucket struct {
	*receiving

	objects string
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	address, objects := s3gateway.Start(t, "films")
	b := &bucket{receiving: &receiving{served: &served{t: t, dir: t.TempDir()}}, objects: objects}
	b.to = []string{"--to", "s3://films/new", "--dir", "uploads"}
	t.Setenv("AWS_ENDPOINT_URL", "http://"+address)
	t.Setenv("AWS_ACCESS_KEY_ID", s3gateway.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3gateway.Secret)
	for _, name := range []string{"AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_PROFILE", "none") // the keys come first
	return b
}

// with returns a command with variables of its environment changed.
func with(cmd *exec.Cmd, environment ...string) *exec.Cmd {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, environment...)
	return cmd
}

func (b *bucket) hasObject(name string, want []byte) {
	b.t.Helper()
	got, err := os.ReadFile(filepath.Join(b.objects, name))
	if err != nil || !bytes.Equal(got, want) {
		b.t.Errorf("%s: %d bytes, want %d, %v", name, len(got), len(want), err)
	}
}

// Files arrive in a bucket, a killed upload continues, what is there is skipped, and errors say
// what to do. The keys are in no file.
func TestE4_UploadsToS3(t *testing.T) {
	b := newBucket(t)
	big, small := b.file("big.bin", 30<<20), b.file("photos/a b.jpg", 1000)
	slow := b.uploads("big.bin", "--chunk", "5M", "--rate", "2MiB/s")
	start(t, slow)
	b.await("a part", func(all []transfer.Transfer) bool { return len(all) == 1 && all[0].Done > 6<<20 })
	_ = slow.Process.Kill()
	_ = slow.Wait()
	u := b.upload("big.bin", "photos", "--lanes", "3", "--chunk", "5M")
	if u.status != 0 || !strings.Contains(u.stderr, "2 sent (30.0 MiB), 0 skipped, 0 failed") {
		t.Fatalf("%+v", u)
	}
	b.hasObject("new/big.bin", big)
	b.hasObject("new/a b.jpg", small)
	b.upload("big.bin", "photos").want(t, "", "0 sent (0 B), 2 skipped, 0 failed", 0)
	in := runCmd(t, b.uploads("-", "--name", "in.txt"), "from a pipe\n")
	if in.status != 0 {
		t.Fatalf("%+v", in)
	}
	b.hasObject("new/in.txt", []byte("from a pipe\n"))
	for _, c := range []struct{ variable, says string }{
		{"AWS_SECRET_ACCESS_KEY=wrong", "the secret key is wrong"},
		{"AWS_ENDPOINT_URL=http://127.0.0.1:1", "connection refused"},
		{"AWS_ENDPOINT_URL=http://a:b@127.0.0.1:1", "without path and credentials"},
		{"AWS_ENDPOINT_URL=here", `"here" is not the http or https URL of an S3 server`},
	} {
		cmd := with(b.uploads("photos", "--name", "other", "--retries", "0", "--dir", "other"), c.variable)
		if u := runCmd(t, cmd, ""); u.status == 0 || !strings.Contains(u.stderr, c.says) {
			t.Errorf("%s: %+v", c.variable, u)
		}
	}
	b.noSecrets()
}

// Files of the same name would be the same object, of which one is left: they are refused before anything is sent.
func TestE4_UploadsToS3HaveNamesOfTheirOwn(t *testing.T) {
	b := newBucket(t)
	b.file("photos/may/1.jpg", 1000)
	b.file("photos/june/1.jpg", 2000)
	for _, args := range [][]string{nil, {"--to", "S3://films/new"}} {
		u := b.upload(append(args, "photos")...)
		for _, path := range []string{"photos/june/1.jpg", "photos/may/1.jpg"} {
			if u.status != 125 || !strings.Contains(u.stderr, path) {
				t.Errorf("%+v", u)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(b.objects, "new", "1.jpg")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was sent: %v", err)
	}
}

// noSecrets checks that no file of the uploads has the secret key.
func (b *bucket) noSecrets() {
	b.t.Helper()
	files := 0
	err := filepath.WalkDir(filepath.Join(b.dir, "uploads"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(s3gateway.Secret)) {
			b.t.Errorf("%s has the secret key", path)
		}
		return err
	})
	if err != nil || files == 0 {
		b.t.Errorf("%d files of the store were read: %v", files, err)
	}
}

// An upload to a bucket that is cancelled while it is paused leaves no parts.
func TestE2_CancelledUploadToS3LeavesNothing(t *testing.T) {
	b := newBucket(t)
	b.file("big.bin", 30<<20)
	cmd := b.uploads("big.bin", "--chunk", "5M", "--rate", "2MiB/s")
	start(t, cmd)
	all := b.await("a part", func(all []transfer.Transfer) bool { return len(all) == 1 && all[0].Done > 6<<20 })
	b.stint("pause", all[0].ID.String(), "--server", "uploads").want(t,
		"1 task running and asked to end; --wait waits until it has ended\n", "", 0)
	b.await("paused", func(all []transfer.Transfer) bool { return all[0].State == queue.Paused })
	if n := b.parts(); n == 0 {
		t.Error("the paused upload has no parts")
	}
	b.stint("cancel", all[0].ID.String(), "--server", "uploads").want(t, "1 task cancelled\n", "", 0)
	if status := finish(t, cmd); status != 1 {
		t.Errorf("exit status %d", status)
	}
	if n := b.parts(); n != 0 {
		t.Errorf("%d files of parts are left", n)
	}
}

// parts returns the number of files of unfinished uploads in the bucket.
func (b *bucket) parts() (n int) {
	b.t.Helper()
	err := filepath.WalkDir(b.objects, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}
