//go:build linux

package shm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// Tests start this test binary as the processes that share a region.
const (
	processDoes   = "STINT_TEST_PROCESS"
	processRegion = "STINT_TEST_REGION"
)

func TestMain(m *testing.M) {
	switch os.Getenv(processDoes) {
	case "":
		os.Exit(m.Run())
	case "work":
		work()
	case "hold":
		hold(inProcess())
	case "hold one":
		hold(openOne())
	case "wait for it":
		r := openOne()
		_, err := os.Stdout.WriteString("x")
		must(err)
		_, err = os.Stdin.Read(make([]byte, 1))
		must(err)
		hold(r)
	case "sign":
		r, pid := openOne(), 0
		_, err := fmt.Scan(&pid)
		must(err)
		r.SignAs(pid)
		hold(r)
	case "lock":
		lockAndBlock()
	case "parent":
		parent()
	case "touch":
		touch()
	case "open halfway":
		openHalfway()
	case "exec shell":
		execShell()
	case "share file":
		shareFile()
	case "open":
		_, err := shm.Open(os.Getenv(processRegion), geometry)
		fmt.Print(err)
	case "fill":
		fill()
	case "again":
		again()
	case "draw":
		draw()
	case "first":
		firstInQueue(slowly)
	case "first for much":
		firstInQueue(never)
	}
}

// geometry is the usual geometry of a region in these tests.
var (
	geometry = shm.Geometry{Slots: []int{3}, Mutexes: 1}
	one      = shm.Geometry{Slots: []int{1}}
)

// inProcess opens the region, or ends the process if that fails.
func inProcess() *shm.Region {
	r, err := shm.Open(os.Getenv(processRegion), geometry)
	must(err)
	return r
}

func openOne() *shm.Region {
	r, err := shm.Open(os.Getenv(processRegion), one)
	must(err)
	return r
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// witness takes a lock of the kernel for every slot that is granted, and ends the
// process if another process holds that lock: then the slot was granted twice.
type witness struct {
	*shm.Slots
	region *shm.Region
}

func (w *witness) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	grant, err := w.Slots.TryAcquire(tier)
	if err == nil && !w.region.Claim(shm.SlotOf(uint64(grant))) {
		must(fmt.Errorf("slot %d was granted twice", shm.SlotOf(uint64(grant))))
	}
	return grant, err
}

func (w *witness) Release(grant stint.Grant) {
	w.region.Unclaim(shm.SlotOf(uint64(grant)))
	w.Slots.Release(grant)
}

// work takes and releases slots until the process is killed, in all tiers, cancels some
// of its waits, and prints a byte for each slot.
func work() {
	r := inProcess()
	s := stint.New(2, stint.Config{Slots: &witness{Slots: r.Slots(0), region: r}})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				p, err := s.At(stint.Lowest + stint.Priority(rand.IntN(stint.Tiers))).Acquire(ctx)
				if err == nil {
					_, err = os.Stdout.WriteString("x")
					must(err)
					p.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// hold takes a slot, prints that, and keeps it.
func hold(r *shm.Region) {
	s := stint.New(1, stint.Config{Slots: r.Slots(0)})
	_, err := s.Acquire(context.Background())
	must(err)
	_, err = os.Stdout.WriteString("x")
	must(err)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// blockForever blocks until the process is killed. Without a signal to listen for, Go ends a
// process in which no goroutine can ever go on.
func blockForever() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGWINCH)
	select {}
}

// lockAndBlock locks the mutex, prints that, and waits.
func lockAndBlock() {
	_, err := inProcess().Mutex(0).Lock(context.Background())
	must(err)
	_, err = os.Stdout.WriteString("x")
	must(err)
	blockForever()
}

// parent takes all slots, starts a child that outlives it, and waits.
func parent() {
	s := stint.New(3, stint.Config{Slots: inProcess().Slots(0)})
	for range 3 {
		_, err := s.Acquire(context.Background())
		must(err)
	}
	child := exec.CommandContext(context.Background(), "/bin/sh", "-c", "read line") // of the test's standard input
	child.Stdin = os.Stdin
	must(child.Start())
	_, err := os.Stdout.WriteString("x")
	must(err)
	blockForever()
}

// touch takes a slot when it reads a line.
func touch() {
	slots := inProcess().Slots(0)
	_, err := os.Stdout.WriteString("x")
	must(err)
	_, err = os.Stdin.Read(make([]byte, 1))
	must(err)
	_, err = slots.TryAcquire(stint.Normal)
	must(err)
	os.Exit(0)
}

// openHalfway stops in the middle of opening the region.
func openHalfway() {
	if !inProcess().Make() {
		must(errors.New("another process is opening it"))
	}
	_, err := os.Stdout.WriteString("x")
	must(err)
	blockForever()
}

// execShell takes a slot and executes a shell, which reads commands.
func execShell() {
	r := inProcess()
	_, err := r.Slots(0).TryAcquire(stint.Normal)
	must(err)
	must(r.KeepOnExec("shell"))
	must(syscall.Exec("/bin/sh", []string{"sh"}, os.Environ()))
}

// shareFile takes a slot, starts a shell that inherits the region's file and closes it
// after it has read a line, and waits.
func shareFile() {
	r := inProcess()
	_, err := r.Slots(0).TryAcquire(stint.Normal)
	must(err)
	file, err := r.File()
	must(err)
	child := exec.CommandContext(context.Background(), "/bin/sh", "-c", "read line; exec 3<&-; printf x; read line")
	child.Stdin, child.Stdout, child.ExtraFiles = os.Stdin, os.Stdout, []*os.File{file}
	must(child.Start())
	_, err = os.Stdout.WriteString("x")
	must(err)
	blockForever()
}

// process is a process that a test has started.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File
	path    string // of the region
}

// start starts a process that does something with the region at path, by a name in
// TestMain.
func start(t *testing.T, does, path string) *process {
	t.Helper()
	p, err := tryStart(t, does, path, func(*exec.Cmd) {})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryStart(t *testing.T, does, path string, set func(*exec.Cmd)) (*process, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Stderr = t.Output()
	set(cmd)
	p, err := launch(cmd, does, path)
	if err == nil {
		t.Cleanup(func() {
			p.cmd.Process.Kill() //nolint:errcheck // most have ended
			p.in.Close()
			p.out.Close()
		})
	}
	return p, err
}

// launch starts cmd, which is this test binary, as a process that does something.
func launch(cmd *exec.Cmd, does, path string) (*process, error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	cmd.Env = append(os.Environ(), processDoes+"="+does, processRegion+"="+path, "GOMAXPROCS=2")
	cmd.Stdin, cmd.Stdout = in, stdout
	p := &process{cmd, stdin, out, path}
	if err := cmd.Start(); err != nil {
		stdin.Close()
		out.Close()
		return nil, err
	}
	return p, nil
}

// says returns what a process writes until it ends, also if it fails.
func (p *process) says() string {
	text, err := io.ReadAll(p.out)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// send writes a line to the process.
func (p *process) send(t *testing.T, line string) {
	t.Helper()
	if _, err := p.in.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// readUntil returns what the process writes before mark.
func (p *process) readUntil(t *testing.T, mark string) (text string) {
	t.Helper()
	for buffer := make([]byte, 1); !strings.HasSuffix(text, mark); text += string(buffer) {
		if _, err := p.out.Read(buffer); err != nil {
			t.Fatalf("the process has ended: %v, %q", err, text)
		}
	}
	return strings.TrimSuffix(text, mark)
}

// await waits until the process has had n slots. It reports false if the process ends
// before.
func (p *process) await(n int) bool {
	for buffer := make([]byte, 1); n > 0; n-- {
		if _, err := p.out.Read(buffer); err != nil {
			return false
		}
	}
	return true
}

// drain kills the process and returns the number of bytes it has written that were not
// read.
func (p *process) drain() int64 {
	_ = p.cmd.Process.Kill()
	n, _ := io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
	p.out.Close()
	return n
}

// kill kills the process and waits until it has ended. It reports false if it had
// ended before.
func (p *process) kill() bool {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.out.Close()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
