package stint_test

import (
	"context"
	"fmt"

	"github.com/stintgo/stint"
)

// A panic is the outcome's error. Config.OnPanic receives the panics of
// functions whose outcome is not awaited.
func ExampleConfig_onPanic() {
	panics := make(chan any)
	s := stint.New(4, stint.Config{OnPanic: func(e *stint.PanicError) { panics <- e.Value }})
	stint.Go(context.Background(), s, func(context.Context) (int, error) { panic("out of cheese") })
	fmt.Println("a function panicked:", <-panics)
	// Output: a function panicked: out of cheese
}
