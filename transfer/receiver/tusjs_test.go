package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/command"
	"github.com/stintgo/stint/transfer/receiver"
)

// tusjs is tus-js-client (https://github.com/tus/tus-js-client) in a process of Node, with the
// version in testdata/tusjs/package.json.
type tusjs struct {
	*site

	dir   string // of the program
	input string // the file that it uploads
}

func newTusjs(t *testing.T, data []byte) *tusjs {
	t.Helper()
	if err := command.Need("node:nodejs", "npm:npm"); err != nil {
		t.Fatal(err)
	}
	j := &tusjs{site: open(t, receiver.Config{}), dir: t.TempDir()}
	if err := os.CopyFS(j.dir, os.DirFS(filepath.Join("testdata", "tusjs"))); err != nil {
		t.Fatal(err)
	}
	runIn(t, j.dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	j.input = filepath.Join(j.dir, "input")
	if err := os.WriteFile(j.input, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

// runIn runs a program in a directory, and returns what it printed. It fails the test if the
// program fails, or has not ended after five minutes.
func runIn(tb testing.TB, dir, program string, args ...string) string {
	tb.Helper()
	const patience = 5 * time.Minute
	ctx, stop := context.WithTimeout(tb.Context(), patience)
	defer stop()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = dir, &said, time.Second
	printed, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %q: %v, %v\n%s%s", program, args, err, ctx.Err(), printed, said.Bytes())
	}
	return string(printed)
}

// outcome is what the program prints about a scenario.
type outcome struct {
	URL      string         `json:"url"`
	Status   int            `json:"status"`   // of the answer that ended it; 0 if it succeeded
	Requests map[string]int `json:"requests"` // by method
}

// run uploads the file under a name.
func (j *tusjs) run(scenario, name string) (o outcome) {
	j.tb.Helper()
	// Each upload has its state: a client that is faster than its storage leaves the state of a
	// parallel upload behind.
	state := filepath.Join(j.dir, name+".state")
	printed := runIn(j.tb, j.dir, "node", "client.mjs", scenario, j.url, j.input, name, state)
	if err := json.Unmarshal([]byte(printed), &o); err != nil {
		j.tb.Fatalf("%s: %v: %s", scenario, err, printed)
	}
	if (o.Status != 0) != (scenario == "damaged") {
		j.tb.Fatalf("%s: %s", scenario, printed)
	}
	return o
}

// tus-js-client uploads a file in chunks, with checksums and in four parallel uploads; it aborts
// one and finds and resumes it from another process, and it aborts one for good. A chunk that does not
// match its checksum is refused.
func TestTus_JSClient(t *testing.T) {
	const chunk, chunks = 256 << 10, 9 // as in client.mjs; the last chunk is shorter
	data := content(7, chunks*chunk-100)
	j := newTusjs(t, data)
	created := map[string]int{"whole": 1, "checksum": 1, "parallel": 5}
	for scenario, want := range created {
		did := j.run(scenario, scenario+".bin").Requests
		j.file(scenario+".bin", data)
		if did["POST"] != want || did["PATCH"] < chunks {
			t.Errorf("%s: %v; want %d uploads and %d chunks at least", scenario, did, want, chunks)
		}
	}
	j.run("abort", "resumed.bin")
	j.names("whole.bin", "checksum.bin", "parallel.bin")
	did := j.run("resume", "resumed.bin").Requests
	j.file("resumed.bin", data)
	if did["POST"] != 0 || did["HEAD"] != 1 || did["PATCH"] == 0 || did["PATCH"] > chunks-2 {
		t.Errorf("the second process made %v; want one HEAD, and 1 to %d PATCH", did, chunks-2)
	}
	damaged := j.run("damaged", "damaged.bin")
	if damaged.Status != 460 || j.offset(damaged.URL) != 0 {
		t.Errorf("a damaged chunk: %+v; want status 460 and offset 0", damaged)
	}
	j.want(j.tus("DELETE", damaged.URL, nil), 204)
	url := j.run("terminate", "gone.bin").URL
	j.want(j.tus("HEAD", url, nil), 404)
	j.names("whole.bin", "checksum.bin", "parallel.bin", "resumed.bin")
	j.clean()
}
