package shared

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stintgo/stint"

	"github.com/stintgo/stint/bench/measure"
)

// orderVariable is the environment variable with the order of a worker, which
// makes a process one.
const orderVariable = "STINT_BENCH_ORDER"

// What workers do.
const (
	doesPairs  = "pairs"  // acquire and release without pause for a while, at each command
	doesFlood  = "flood"  // the same for ever, with some work in between
	doesObey   = "obey"   // acquire or release, as each command says
	doesDaemon = "daemon" // serve the others
)

// order is what a worker is for.
type order struct {
	Does    string
	System  string
	Address string
	Slots   int
	Callers int // goroutines
	Tier    stint.Priority
	Span    time.Duration // of pairs
	Work    time.Duration // between acquire and release
	Ballast int           // bytes of memory that it has
}

// The commands. A worker answers each, and answers once when it is ready.
const (
	runPairs    = "run"
	acquireSlot = "acquire"
	releaseSlot = "release"
)

// answer is what a worker says.
type answer struct {
	Began, Ended int64 // as stamp gives them
	Pairs        int
}

// stamp is the time of day in nanoseconds, which is that of all processes.
func stamp() int64 { return measure.Now().UnixNano() }

// Worker does what this process was started for and ends it, if it is a worker.
// Otherwise it returns.
func Worker() {
	text, ok := os.LookupEnv(orderVariable)
	if !ok {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.work(commands())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// commands returns the lines of the standard input. At its end the process exits,
// whatever it waits for. The input is read without blocking a thread: Go takes long to
// notice that a blocked thread has one of its processors, which would delay all other
// goroutines.
func commands() <-chan string {
	lines := make(chan string)
	_ = syscall.SetNonblock(syscall.Stdin, true)
	in := os.NewFile(uintptr(syscall.Stdin), "stdin")
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- scanner.Text()
		}
		os.Exit(0)
	}()
	return lines
}

func (o order) work(commands <-chan string) error {
	ballast := make([]byte, o.Ballast)
	for at := 0; at < len(ballast); at += os.Getpagesize() {
		ballast[at] = 1
	}
	if o.Does == doesDaemon {
		if err := serveDaemon(o.Address, o.Slots); err != nil {
			return err
		}
		return answerAll(commands, func(string) (answer, error) { return answer{}, errors.New("it serves") })
	}
	callers, err := o.callers()
	if err != nil {
		return err
	}
	switch o.Does {
	case doesPairs:
		return answerAll(commands, func(string) (answer, error) { return o.pairs(callers) })
	case doesFlood:
		go o.flood(callers)
		return answerAll(commands, func(string) (answer, error) { return answer{}, errors.New("it floods") })
	case doesObey:
		return answerAll(commands, func(command string) (answer, error) { return o.obey(callers[0], command) })
	default:
		return fmt.Errorf("no work %q", o.Does)
	}
}

// answerAll says that the worker is ready, and then answers all commands.
func answerAll(commands <-chan string, do func(command string) (answer, error)) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(answer{}); err != nil {
		return err
	}
	for command := range commands {
		a, err := do(command)
		if err == nil {
			err = out.Encode(a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o order) callers() ([]caller, error) {
	l, err := systemTable[o.System].open(o.Address, o.Slots, o.Callers)
	if err != nil {
		return nil, err
	}
	all := make([]caller, o.Callers)
	for i := range all {
		if all[i], err = l.caller(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pairs warms up for a tenth of the span, and then counts.
func (o order) pairs(callers []caller) (answer, error) {
	if _, err := pairsFor(callers, o.Span/10); err != nil {
		return answer{}, err
	}
	return pairsFor(callers, o.Span)
}

// burstPairs is how many pairs a caller does before it looks whether time is up.
const burstPairs = 16

func pairsFor(callers []caller, span time.Duration) (answer, error) {
	var over atomic.Bool
	began := stamp()
	time.AfterFunc(span, func() { over.Store(true) })
	counts, errs := make([]int, len(callers)), make([]error, len(callers))
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() {
			for !over.Load() && errs[i] == nil {
				errs[i] = burst(c, burstPairs)
				counts[i] += burstPairs
			}
		})
	}
	all.Wait()
	a := answer{Began: began, Ended: stamp()}
	for _, n := range counts {
		a.Pairs += n
	}
	return a, errors.Join(errs...)
}

// flood has all callers work, each with a slot.
func (o order) flood(callers []caller) {
	for _, c := range callers {
		go func() {
			for c.acquire(o.Tier) == nil {
				for began := measure.Now(); measure.Since(began) < o.Work; {
				}
				if c.release() != nil {
					return
				}
			}
		}()
	}
}

func (o order) obey(c caller, command string) (answer, error) {
	a := answer{Began: stamp()}
	var err error
	switch command {
	case acquireSlot:
		err = c.acquire(o.Tier)
	case releaseSlot:
		err = c.release()
	default:
		err = fmt.Errorf("no command %q", command)
	}
	a.Ended = stamp()
	return a, err
}
