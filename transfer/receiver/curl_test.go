package receiver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/command"
	"github.com/stintgo/stint/transfer/receiver"
)

// The examples of docs/receiver.md with curl do what they say, in the order in which they are
// there: tus, the IETF draft, and a whole file and chunks by plain calls.
func TestDocsRunWithCurl(t *testing.T) {
	if err := command.Need("curl:curl", "openssl:openssl"); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/receiver.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(examples) != 3 {
		t.Fatalf("docs/receiver.md has %d examples; want 3", len(examples))
	}
	s := open(t, receiver.Config{})
	dir, data := t.TempDir(), content(50, 2_000_000)
	for name, part := range map[string][]byte{"backup.tar": data, "part1": data[:1_000_000], "part2": data[1_000_000:]} {
		if err := os.WriteFile(filepath.Join(dir, name), part, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := [][]string{
		{"backup.tar"},
		{"backup.tar", "backup-2.tar"},
		{"backup.tar", "backup-2.tar", "backup-3.tar", "backup-4.tar"},
	}
	said := []string{"Upload-Offset: 0\r\n", "", `"received":[[0,2000000]]`}
	for i, example := range examples {
		script := strings.ReplaceAll(example[1], "http://localhost:8080/files/", s.url)
		script = strings.ReplaceAll(script, "http://localhost:8080", strings.TrimSuffix(s.url, "/files/"))
		// An answer that is an error ends the example, and curl uses no configuration of the user.
		script = "set -euo pipefail\ncurl() { command curl -q --fail-with-body -sS --max-time 120 \"$@\"; }\n" + script
		printed := runIn(t, dir, "bash", "-c", script)
		if !strings.Contains(printed, said[i]) {
			t.Errorf("example %d printed\n%s\nwant %q", i+1, printed, said[i])
		}
		s.names(files[i]...)
		for _, name := range files[i] {
			s.file(name, data)
		}
	}
	s.clean()
}
