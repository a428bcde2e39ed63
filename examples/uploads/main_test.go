package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page is at its address, its modules are beside it, and a file arrives.
func TestE1_ExampleServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "inbox")
	handler, files, err := newHandler(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	for path, want := range map[string]string{
		"/": `data-endpoint="/files/"`, "/upload/": `data-endpoint="/files/"`, "/upload/scheduler.js": "class Scheduler",
	} {
		if got := do(t, http.MethodGet, server.URL+path, ""); !strings.Contains(got, want) {
			t.Errorf("%s does not contain %s:\n%s", path, want, got)
		}
	}
	do(t, http.MethodPut, server.URL+"/files/note.txt", "hello")
	if got, err := os.ReadFile(filepath.Join(dir, "note.txt")); err != nil || string(got) != "hello" {
		t.Errorf("received %q, %v", got, err)
	}
}

func do(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: status %d, %v: %s", method, url, resp.StatusCode, err, content)
	}
	return string(content)
}
