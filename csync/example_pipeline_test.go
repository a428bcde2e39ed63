package csync_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/csync"
)

// countWords counts the words of all texts: a producer reads the texts, some
// consumers count, and an aggregator adds up what they have found. At most
// memory bytes of text are on their way at a time. It ends early with ctx, and
// returns the cause.
func countWords(ctx context.Context, texts []string, consumers int, memory int64) (map[string]int, error) {
	type found struct {
		words map[string]int
		bytes int64
	}
	var (
		work     = csync.NewChan[string](consumers)
		results  = csync.NewChan[found](consumers)
		inFlight = csync.NewSemaphore(memory)
		// The last consumer to arrive closes the results; until then all wait.
		finish = csync.NewBarrier(consumers, results.Close)
		wg     sync.WaitGroup
	)
	defer wg.Wait() // no goroutine outlives the call
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	wg.Go(func() { // the producer
		defer work.Close()
		for _, text := range texts {
			if err := inFlight.Acquire(ctx, int64(len(text))); err != nil {
				cancel(err)
				return
			}
			if work.Send(ctx, text) != nil {
				return
			}
		}
	})
	for range consumers {
		wg.Go(func() {
			for text := range work.All(ctx) {
				words := map[string]int{}
				for word := range strings.FieldsSeq(text) {
					words[word]++
				}
				if results.Send(ctx, found{words, int64(len(text))}) != nil {
					break
				}
			}
			_, _ = finish.Wait(ctx)
		})
	}

	total := map[string]int{} // the aggregator is this goroutine
	for part := range results.All(ctx) {
		for word, n := range part.words {
			total[word] += n
		}
		inFlight.Release(part.bytes)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return total, nil
}

func Example_pipeline() {
	texts := []string{"one fish two fish", "red fish", "two blue fish"}
	total, err := countWords(context.Background(), texts, 2, 20)
	for _, word := range slices.Sorted(maps.Keys(total)) {
		fmt.Println(word, total[word])
	}
	fmt.Println(err)
	// Output:
	// blue 1
	// fish 4
	// one 1
	// red 1
	// two 2
	// <nil>
}

func TestD9_Pipeline(t *testing.T) {
	const texts = 5000
	var input []string
	want := map[string]int{}
	for i := range texts {
		word := fmt.Sprintf("w%d", i%100)
		input = append(input, strings.Repeat(word+" ", 1+i%7))
		want[word] += 1 + i%7
	}
	for _, consumers := range []int{1, 2, 8} {
		got, err := countWords(t.Context(), input, consumers, 100)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%d consumers: %d words, %v", consumers, len(got), err)
		}
	}
}

// TestD9_PipelineEndsEarly ends the context before and while it runs, and gives
// the producer a text that can never be in flight. A goroutine that is left fails
// the bubble.
func TestD9_PipelineEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLeft)
		if _, err := countWords(ctx, []string{"a"}, 3, 1); !errors.Is(err, errLeft) {
			t.Errorf("ended context: %v, want its cause", err)
		}
		if _, err := countWords(t.Context(), []string{"a", "too long"}, 3, 5); !errors.Is(err, csync.ErrTooHeavy) {
			t.Errorf("a text above the memory: %v, want ErrTooHeavy", err)
		}
		for range 100 {
			ctx, cancel := context.WithCancelCause(t.Context())
			go cancel(errLeft)
			got, err := countWords(ctx, slices.Repeat([]string{"a b a"}, 30), 3, 20)
			if err == nil && got["a"] != 60 || err != nil && !errors.Is(err, errLeft) {
				t.Fatalf("%v, %v", got, err)
			}
		}
	})
}
