package filestore_test

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue/filestore"
)

// TestC6_DamagedManifest damages the manifest at each place. The store then opens with all of
// its tasks, or is refused and leaves its directory as it is, so that it can be repaired.
func TestC6_DamagedManifest(t *testing.T) {
	const dir, openings, each = "store", 3, 3 // an opening moves what is in the log to a table
	files := vfs.NewMem()
	for range openings {
		s, err := filestore.OpenOn(files, dir, filestore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c := newTasks(t, s)
		for range each {
			if err := c.submit(2000); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	manifest := ""
	for name := range contents(t, files, dir) {
		if strings.HasPrefix(name, "MANIFEST-") && name > manifest {
			manifest = name
		}
	}
	content := contents(t, files, dir)[manifest]
	stride := 1 + len(content)/100
	refused := 0
	for at := 0; at < len(content); at += stride {
		flipped := []byte(content)
		flipped[at] ^= 0xa5
		for _, damaged := range []string{content[:at], string(flipped)} {
			if opensWithout(t, files, dir, manifest, damaged, openings*each) {
				refused++
			}
		}
	}
	if refused < len(content)/stride/2 {
		t.Errorf("%d of %d damaged manifests are refused", refused, 2*len(content)/stride)
	}
}

// TestC6_LostMarker: without the marker of its manifest a database looks new, and its tables
// like those of another one.
func TestC6_LostMarker(t *testing.T) {
	const dir = "store"
	files := vfs.NewMem()
	c := newTasks(t, openIn(t, files, dir, filestore.Config{}))
	if err := c.submit(10); err != nil {
		t.Fatal(err)
	}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	for name := range contents(t, files, dir) {
		if strings.HasPrefix(name, "marker.manifest.") && !opensWithout(t, files, dir, name, "", 1) {
			t.Errorf("a store without %s opens", name)
		}
	}
}

// opensWithout opens a copy of a directory in which a file has other content, or does not exist
// if that is empty. It reports whether the store is refused, and checks that it has all tasks
// otherwise.
func opensWithout(t *testing.T, from vfs.FS, dir, name, content string, tasks int) (refused bool) {
	t.Helper()
	files := vfs.NewMem()
	if ok, err := vfs.Clone(from, files, dir, dir); !ok || err != nil {
		t.Fatal(ok, err)
	}
	path := files.PathJoin(dir, name)
	if err := files.Remove(path); err != nil {
		t.Fatal(err)
	}
	if content != "" {
		f, err := files.Create(path, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	before := contents(t, files, dir)
	s, err := filestore.OpenOn(files, dir, filestore.Config{})
	if err != nil {
		if after := contents(t, files, dir); !maps.Equal(before, after) {
			t.Errorf("%s of %d bytes is refused, and the directory changes: %v", name, len(content), err)
		}
		if !strings.Contains(err.Error(), "restore the directory from a copy") {
			t.Errorf("%s of %d bytes is refused without a remedy: %v", name, len(content), err)
		}
		return true
	}
	defer s.Close()
	found, err := all(t.Context(), s)
	if err != nil || len(found) != tasks {
		t.Errorf("with %s of %d bytes there are %d of %d tasks, %v", name, len(content), len(found), tasks, err)
	}
	return false
}

// contents returns the files of a directory, except the lock.
func contents(t *testing.T, files vfs.FS, dir string) map[string]string {
	t.Helper()
	names, err := files.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		f, err := files.Open(files.PathJoin(dir, name))
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		content, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		all[name] = string(content)
	}
	return all
}
