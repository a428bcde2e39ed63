package stint_test

import (
	"context"
	"fmt"

	"github.com/stintgo/stint"
)

// A panic is the outcome's error. Where nobody waits for the outcome, OnPanic tells of it.
func ExampleConfig_onPanic() {
	told := make(chan any)
	s := stint.New(4, stint.Config{OnPanic: func(e *stint.PanicError) { told <- e.Value }})
	stint.Go(context.Background(), s, func(context.Context) (int, error) { panic("out of cheese") })
	fmt.Println("a function panicked:", <-told)
	// Output: a function panicked: out of cheese
}
