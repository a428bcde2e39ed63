package stint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// sink notes when it was written to, and how much.
type sink struct {
	bytes.Buffer
	at     []time.Time
	sizes  []int
	closed int
	answer func(p []byte) (int, error) // nil takes all
}

func (s *sink) Write(p []byte) (int, error) {
	s.at, s.sizes = append(s.at, time.Now()), append(s.sizes, len(p))
	if s.answer != nil {
		return s.answer(p)
	}
	return s.Buffer.Write(p)
}

func (s *sink) Close() error {
	s.closed++
	return errors.New("closing failed")
}

// source gives a number of bytes, as many a time as are asked for or less.
type source struct {
	io.Reader
	closed int
}

func newSource(n, most int) *source {
	all := io.LimitReader(zeros{}, int64(n))
	return &source{Reader: readerFunc(func(p []byte) (int, error) { return all.Read(p[:min(len(p), most)]) })}
}

func (s *source) Close() error {
	s.closed++
	return errors.New("closing failed")
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestB12_ReaderReadsAtTheRate(t *testing.T) {
	for _, short := range []int{1 << 30, 100} {
		synctest.Test(t, func(t *testing.T) {
			l := empty(t, 100_000, 20_000)
			start := time.Now()
			n, err := io.Copy(io.Discard, l.Reader(t.Context(), newSource(1_000_000, short)))
			if n != 1_000_000 || err != nil {
				t.Fatalf("copied %d, %v", n, err)
			}
			if got := time.Since(start); got != 10*time.Second {
				t.Errorf("took %v for ten seconds' worth", got)
			}
		})
	}
}

func TestB12_ReaderIsAReader(t *testing.T) {
	l := stint.NewLimiter(1e9, stint.LimiterConfig{Capacity: 3})
	content := []byte(strings.Repeat("three priorities and a limit\n", 10))
	if err := iotest.TestReader(l.Reader(t.Context(), bytes.NewReader(content)), content); err != nil {
		t.Error(err)
	}
}

func TestB12_WriterSplitsLargeChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 100_000, 20_000)
		start := time.Now()
		out := &sink{}
		content := bytes.Repeat([]byte("abcdefghi\n"), 50_000)
		if n, err := l.Writer(t.Context(), out).Write(content); n != len(content) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("took %v for five seconds' worth", got)
		}
		if !bytes.Equal(out.Bytes(), content) {
			t.Error("other bytes came out than went in")
		}
		for i, size := range out.sizes {
			if want := start.Add(time.Duration(i+1) * 10 * time.Millisecond); size != 1000 || !out.at[i].Equal(want) {
				t.Fatalf("write %d of %d bytes at %v", i, size, out.at[i].Sub(start))
			}
		}
	})
}

func TestB12_ChunksFitTheLimit(t *testing.T) {
	for _, test := range []struct {
		rate     float64
		capacity int64
		want     int
	}{
		{1e6, 0, 10_000},
		{1e6, 5000, 5000},
		{30, 0, 1},
		{1 << 33, 0, 1 << 20},
	} {
		l := stint.NewLimiter(test.rate, stint.LimiterConfig{Capacity: test.capacity})
		out := &sink{}
		if _, err := l.Writer(t.Context(), out).Write(make([]byte, test.want)); err != nil || len(out.sizes) != 1 {
			t.Errorf("rate %v: %d writes, %v, want one", test.rate, len(out.sizes), err)
		}
		l.SetRate(1 << 34)
		l.SetCapacity(0)
		out.sizes = nil
		if _, err := l.Writer(t.Context(), out).Write(make([]byte, 1<<20)); err != nil || len(out.sizes) != 1 {
			t.Errorf("after a change: %d writes, %v, want one", len(out.sizes), err)
		}
	}
}

func TestB12_HigherStreamGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 100_000, 1000)
		start := time.Now()
		done := make(chan time.Duration, 2)
		read := func(r io.Reader) {
			if _, err := io.Copy(io.Discard, r); err != nil {
				t.Error(err)
			}
			done <- time.Since(start)
		}
		low := stint.WithPriority(t.Context(), stint.Low)
		go read(l.Reader(low, newSource(50_000, 1<<20)))
		time.Sleep(100 * time.Millisecond)
		go read(l.At(stint.High).Reader(low, newSource(50_000, 1<<20)))
		if high, low := <-done, <-done; high > 620*time.Millisecond || low != time.Second {
			t.Errorf("the higher one was done after %v, the lower after %v", high, low)
		}
	})
}

// Streams of one tier get the same number of bytes, whatever the sizes of their writes and
// reads, and all together what the limiter admits.
func TestB12_StreamsOfATierShareByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, seconds = 5 << 20, 10
		l := empty(t, rate, rate)
		ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
		defer cancel()
		sizes := []int{100, 8 << 10, 128 << 10, 1 << 20}
		got := make([]int, 2*len(sizes))
		var all sync.WaitGroup
		for i, size := range sizes {
			all.Go(func() {
				w := l.Writer(ctx, io.Discard)
				for p := make([]byte, size); ; {
					n, err := w.Write(p)
					if got[i] += n; err != nil {
						return
					}
				}
			})
			all.Go(func() {
				n, _ := io.CopyBuffer(io.Discard, l.Reader(ctx, zeros{}), make([]byte, size))
				got[len(sizes)+i] = int(n)
			})
		}
		all.Wait()
		sum, share := 0, rate*seconds/len(got)
		for i, n := range got {
			if sum += n; n < share*9/10 || n > share*11/10 {
				t.Errorf("stream %d, of %d bytes at a time, got %d bytes of %d", i, sizes[i%len(sizes)], n, share)
			}
		}
		if most := rate*seconds + len(got)*rate/100; sum > most {
			t.Errorf("all together got %d bytes in %d s, at most %d may be", sum, seconds, most)
		}
	})
}

func TestB12_CloseWhileWaitingReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1, 1)
		in, out := newSource(100, 100), &sink{}
		r, w := l.Reader(t.Context(), in), l.Writer(t.Context(), out)
		start := time.Now()
		time.AfterFunc(time.Second/2, func() {
			if r.Close() == nil || w.Close() == nil {
				t.Error("the error of closing what is underneath was lost")
			}
			if r.Close() != nil || w.Close() != nil {
				t.Error("closing twice is an error")
			}
		})
		written := make(chan error)
		go func() {
			_, err := w.Write(make([]byte, 100))
			written <- err
		}()
		synctest.Wait()
		n, err := r.Read(make([]byte, 100))
		if n != 1 || !errors.Is(err, os.ErrClosed) { // the byte is not lost
			t.Errorf("read %d, %v", n, err)
		}
		if err := <-written; !errors.Is(err, os.ErrClosed) || len(out.sizes) > 0 {
			t.Errorf("wrote %v, %v", out.sizes, err)
		}
		if got := time.Since(start); got != time.Second/2 {
			t.Errorf("returned after %v", got)
		}
		synctest.Wait()
		if in.closed != 1 || out.closed != 1 {
			t.Errorf("closed %d and %d times", in.closed, out.closed)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("read %d, %v after closing", n, err)
		}
		if n, err := w.Write(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("wrote %d, %v after closing", n, err)
		}
		if got := l.Stats(); got.Queued != 0 {
			t.Errorf("%+v afterwards", got)
		}
	})
}

func TestB12_CloseOfWhatCannotBeClosed(t *testing.T) {
	l := stint.NewLimiter(1, stint.LimiterConfig{})
	if err := l.Reader(t.Context(), zeros{}).Close(); err != nil {
		t.Error(err)
	}
	if err := l.Writer(t.Context(), new(bytes.Buffer)).Close(); err != nil {
		t.Error(err)
	}
}

func TestB12_StreamEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1, 1)
		why := errors.New("deadline of the request")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 59500*time.Millisecond, why)
		defer cancel()
		r, w := l.Reader(ctx, zeros{}), l.Writer(ctx, io.Discard)
		n, err := io.ReadFull(r, make([]byte, 1000))
		if n != 60 || !errors.Is(err, why) { // the last one is not paid for
			t.Errorf("read %d, %v", n, err)
		}
		if n, err := w.Write(make([]byte, 3)); n != 0 || !errors.Is(err, why) {
			t.Errorf("wrote %d, %v", n, err)
		}
		if n, err := r.Read(make([]byte, 3)); n != 0 || !errors.Is(err, why) {
			t.Errorf("read %d, %v", n, err)
		}
	})
}

func TestB12_ErrorsOfTheStreamUnderneath(t *testing.T) {
	broken := errors.New("broken")
	l := stint.NewLimiter(1000, stint.LimiterConfig{})
	r := l.Reader(t.Context(), iotest.DataErrReader(strings.NewReader("abc")))
	if n, err := r.Read(make([]byte, 10)); n != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
	r = l.Reader(t.Context(), iotest.ErrReader(broken))
	if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, broken) {
		t.Errorf("read %d, %v", n, err)
	}
	for _, test := range []struct {
		n    int
		err  error
		want error
	}{{4, broken, broken}, {4, nil, io.ErrShortWrite}, {0, nil, io.ErrShortWrite}} {
		out := &sink{answer: func([]byte) (int, error) { return test.n, test.err }}
		if n, err := l.Writer(t.Context(), out).Write(make([]byte, 25)); n != test.n || !errors.Is(err, test.want) {
			t.Errorf("wrote %d, %v, want %d, %v", n, err, test.n, test.want)
		}
	}
	if got := l.Stats().Tokens; got < 967 || got > 1000 {
		t.Errorf("%d tokens left: bytes that did not pass were paid for", got)
	}
}

func TestB12_NothingCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1, 1)
		if n, err := l.Reader(t.Context(), zeros{}).Read(nil); n != 0 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		if n, err := l.Writer(t.Context(), io.Discard).Write(nil); n != 0 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	})
}
