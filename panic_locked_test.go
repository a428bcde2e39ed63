package stint_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stintgo/stint"
)

// brokenSlots are shared slots of which one method calls fail.
type brokenSlots struct {
	method string
	fail   func()
	free   bool
}

func (b *brokenSlots) call(method string) {
	if method == b.method {
		b.fail()
	}
}

func (b *brokenSlots) Bind(func(), func(stint.Grant, error)) {}

func (b *brokenSlots) TryAcquire(stint.Priority) (stint.Grant, error) {
	b.call("TryAcquire")
	if !b.free {
		return 0, stint.ErrNoSlot
	}
	b.free = false
	return 1, nil
}

func (b *brokenSlots) Release(stint.Grant)      { b.call("Release") }
func (b *brokenSlots) Want(stint.Priority, int) { b.call("Want") }
func (b *brokenSlots) Expect()                  { b.call("Expect") }
func (b *brokenSlots) Sleep(func() bool)        {}
func (b *brokenSlots) Rouse()                   {}
func (b *brokenSlots) Usage() stint.Usage       { return stint.Usage{} }

// useLocked calls fail in a function of the user's that a scheduler calls with its lock held.
func useLocked(ctx context.Context, name string, fail func()) {
	if name == "Config.Share" {
		s := stint.New(1, stint.Config{Share: func(string) int {
			fail()
			return 1
		}})
		_, _ = s.Acquire(ctx)
		_, _ = s.Key("a").Acquire(ctx)
		return
	}
	_, method, _ := strings.Cut(name, ".")
	s := stint.New(1, stint.Config{Slots: &brokenSlots{method, fail, method == "Release"}})
	if p, err := s.Acquire(ctx); err == nil {
		p.Release()
	}
}

// failHow is the environment variable that makes a test of this binary fail in a function of the
// user's.
const failHow = "STINT_TEST_FAIL"

// A panic in a function that is called with the scheduler's lock held ends the program, although
// a caller recovers it: the scheduler would stay locked.
func TestA3_PanicWithTheLockHeldEndsTheProgram(t *testing.T) {
	fail := map[string]func(){"panics": func() { panic("broken") }, "exits": runtime.Goexit}
	wants := map[string]string{"panics": "function panicked: broken", "exits": "function called runtime.Goexit"}
	for _, name := range []string{"Config.Share", "Slots.TryAcquire", "Slots.Release", "Slots.Want", "Sleeper.Expect"} {
		for how, want := range wants {
			t.Run(name+" "+how, func(t *testing.T) {
				if f := fail[os.Getenv(failHow)]; f != nil {
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() { _ = recover() }()
						useLocked(t.Context(), name, f)
					}()
					<-ended
					return
				}
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), self, "-test.timeout", "10s", "-test.run", "^"+t.Name()+"$")
				cmd.Env = append(os.Environ(), failHow+"="+how, "GORACE=atexit_sleep_ms=0")
				out, _ := cmd.CombinedOutput()
				if !strings.Contains(string(out), "panic: stint: "+name+" ") || !strings.Contains(string(out), want) {
					t.Errorf("the program prints %q, want a panic that names %s, and %q", out, name, want)
				}
			})
		}
	}
}
