package output_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/internal/seeded"
)

// files is a sink into two files.
type files struct {
	out, err *os.File
	sink     *output.Sink
}

func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	f := &files{}
	for name, to := range map[string]**os.File{"out": &f.out, "err": &f.err} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		*to = file
	}
	f.sink = output.NewSink(f.out, f.err, nil, [2]bool{})
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// captured returns a capture that a job has written to.
func captured(t *testing.T, spool *output.Spool, stdout, stderr string) *output.Capture {
	t.Helper()
	c, err := spool.Capture(true, true)
	if err != nil {
		t.Fatal(err)
	}
	o, e := c.Files()
	if _, err := o.WriteString(stdout); err != nil {
		t.Fatal(err)
	}
	if _, err := e.WriteString(stderr); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPrinter_AsJobsEnd(t *testing.T) {
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, false)
	large := strings.Repeat("large\n", 50_000)
	for _, r := range []output.Result{
		{Seq: 2, Capture: captured(t, spool, "two", "e2\n")},
		{Seq: 1, Capture: captured(t, spool, large, "")},
		{Seq: 3},
		{Seq: 4, Capture: captured(t, spool, "", "")},
	} {
		var size int64 = -1
		r.Written = func(n int64) error { size = n; return nil }
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
		if want := map[int]int64{1: int64(len(large)), 2: 6}[r.Seq]; size != want {
			t.Errorf("job %d: Written(%d), want %d", r.Seq, size, want)
		}
	}
	if got := content(t, f.out); got != "two"+large {
		t.Errorf("standard output is %d bytes, want two and large", len(got))
	}
	if got := content(t, f.err); got != "e2\n" {
		t.Errorf("standard error is %q", got)
	}
}

func TestPrinter_Tag(t *testing.T) {
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, false)
	long := strings.Repeat("x", 200_000)
	for tag, text := range map[string]string{"a": "1\n\n2", "b": long, "c": ""} {
		if err := p.Print(output.Result{Tag: tag, Capture: captured(t, spool, text, "")}); err != nil {
			t.Fatal(err)
		}
	}
	got := content(t, f.out)
	for _, want := range []string{"a\t1\na\t\na\t2\n", "b\t" + long + "\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%.60q is missing in %.60q", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 4 {
		t.Errorf("%d lines, want 4", n)
	}
}

// Random jobs end in random order with outputs of all sizes, some above the limit for
// memory; the output is that of the jobs in order, and Written is called for each when
// all before it are written.
func TestPrinter_KeepOrderModel(t *testing.T) {
	rng := seeded.Rand(t)
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, true)
	const jobs = 300
	texts := make([]string, jobs)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("job %d\n", i+1), rng.IntN(20))
		if rng.IntN(10) == 0 {
			texts[i] = strings.Repeat(texts[i], 5000)
		}
	}
	written := 0
	for _, i := range rng.Perm(jobs) {
		r := output.Result{Seq: i + 1, Written: func(n int64) error {
			if written++; written != i+1 || n != 2*int64(len(texts[i])) {
				t.Errorf("job %d of %d bytes was written as the %dth with %d", i+1, 2*len(texts[i]), written, n)
			}
			return nil
		}}
		if texts[i] != "" {
			r.Capture = captured(t, spool, texts[i], texts[i])
		}
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Join(texts, "")
	if content(t, f.out) != want || content(t, f.err) != want {
		t.Error("output is not that of the jobs in order")
	}
}

// Large waiting outputs are stored one after the other in one file, which is emptied and
// reused when none of them waits any more.
func TestPrinter_KeepOrderInOneFile(t *testing.T) {
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, true)
	var wantOut, wantErr strings.Builder
	for first := 1; first < 12; first += 4 {
		var waiting []output.Result
		for seq := first; seq < first+4; seq++ {
			out := strings.Repeat(fmt.Sprintf("out %d\n", seq), 10_000*seq)
			err := strings.Repeat(fmt.Sprintf("error %d\n", seq), 20_000/seq)
			wantOut.WriteString(out)
			wantErr.WriteString(err)
			waiting = append(waiting, output.Result{Seq: seq, Capture: captured(t, spool, out, err)})
		}
		for _, i := range []int{2, 1, 3, 0} {
			if err := p.Print(waiting[i]); err != nil {
				t.Fatal(err)
			}
		}
		if content(t, f.out) != wantOut.String() || content(t, f.err) != wantErr.String() {
			t.Fatalf("after job %d output is not that of the jobs in order", first+3)
		}
	}
}

func TestPrinter_FlushSkipsWhatNeverCame(t *testing.T) {
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, true)
	for _, seq := range []int{5, 3, 2} {
		if err := p.Print(output.Result{Seq: seq, Capture: captured(t, spool, fmt.Sprintln(seq), "")}); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, f.out); got != "" {
		t.Errorf("before job 1: %q", got)
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, f.out); got != "2\n3\n5\n" {
		t.Errorf("flushed %q", got)
	}
}

// Jobs end in many goroutines at once; no two outputs are mixed.
func TestPrinter_Concurrently(t *testing.T) {
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, false)
	var wg sync.WaitGroup
	const jobs, lines = 40, 3000
	for i := range jobs {
		wg.Go(func() {
			c := captured(t, spool, strings.Repeat(fmt.Sprintf("%02d\n", i), lines), "")
			if err := p.Print(output.Result{Capture: c}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	changes, last := 0, ""
	got := strings.Fields(content(t, f.out))
	for _, line := range got {
		if line != last {
			changes++
		}
		last = line
	}
	if len(got) != jobs*lines || changes != jobs {
		t.Errorf("%d lines in %d runs, want %d in %d", len(got), changes, jobs*lines, jobs)
	}
}

// Large output, in bursts with steps of the loop between them, is moved to disk in pieces
// and is read back complete.
func TestSpool_MovesLargeOutputToDisk(t *testing.T) {
	f, spool := newFiles(t), output.NewSpool(t.TempDir())
	p := output.NewPrinter(f.sink, spool, false)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- spool.Run(ctx) }()
	c, err := spool.Capture(true, false)
	if err != nil {
		t.Fatal(err)
	}
	stdout, _ := c.Files()
	var want strings.Builder
	for i := range 6 {
		burst := strings.Repeat(fmt.Sprintf("burst %d\n", i), 1<<20+i)
		want.WriteString(burst)
		if _, err := stdout.WriteString(burst); err != nil {
			t.Fatal(err)
		}
		if i == 4 {
			continue // the last two may stay in memory
		}
		// The loop leaves less than it moves, plus a page: it may have run in the middle
		// of the burst.
		for i < 4 && blocks(t, stdout) > 4<<20+os.Getpagesize() {
			runtime.Gosched()
		}
	}
	if err := p.Print(output.Result{Seq: 1, Capture: c}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if content(t, f.out) != want.String() {
		t.Error("the output is not what was written")
	}
}

// blocks returns how much memory, or disk space, a file uses.
func blocks(t *testing.T, f *os.File) int {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return int(st.Blocks) * 512
}

func TestSink_FirstErrorStays(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	spool := output.NewSpool(t.TempDir())
	p := output.NewPrinter(output.NewSink(w, w, nil, [2]bool{}), spool, false)
	for range 2 {
		written := false
		err := p.Print(output.Result{
			Capture: captured(t, spool, "text", ""), Written: func(int64) error { written = true; return nil },
		})
		if !errors.Is(err, syscall.EPIPE) || written {
			t.Errorf("Print = %v, Written called: %v; want a broken pipe, false", err, written)
		}
	}
}

func TestLines_WholeLinesAsTheyCome(t *testing.T) {
	f := newFiles(t)
	l, err := f.sink.Lines(true, true, "tag")
	if err != nil {
		t.Fatal(err)
	}
	// A process left behind keeps the pipe open; Finish must not wait for it.
	stdout, _ := l.Files()
	fd, err := syscall.Dup(int(stdout.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	left := os.NewFile(uintptr(fd), "left behind")
	defer left.Close()
	l.Start()
	for _, text := range []string{"on", "e\ntwo\nthr", "ee"} {
		if _, err := left.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if total := l.Finish(); total != 13 {
		t.Errorf("total %d, want 13", total)
	}
	if got := content(t, f.out); got != "tag\tone\ntag\ttwo\ntag\tthree\n" {
		t.Errorf("got %q", got)
	}
}

func TestLines_LongLine(t *testing.T) {
	f := newFiles(t)
	l, err := f.sink.Lines(true, false, "")
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := l.Files()
	if stderr != nil {
		t.Error("a pipe for a stream that was not asked for")
	}
	fd, err := syscall.Dup(int(stdout.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(fd), "job")
	l.Start()
	text := bytes.Repeat([]byte("x"), 700_000)
	for range 3 {
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if total := l.Finish(); total != 2_100_000 {
		t.Errorf("total %d", total)
	}
	if got := strings.Count(content(t, f.out), "x"); got != 2_100_000 {
		t.Errorf("%d bytes arrived", got)
	}
}
