package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/transfer"
)

// A worker uploads the files that are added, two at once. Programs keep their tasks in a
// directory (package filestore) or a database, so that they survive the process.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	path := filepath.Join(dir, "hello.txt")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		panic(err)
	}
	server := httptest.NewServer(&tusServer{extensions: allExtensions, uploads: map[string]*stored{}})
	defer server.Close()

	ctx, stop := context.WithCancel(context.Background())
	q := queue.New(memstore.New(memstore.Config{}), queue.Config{})
	rate := stint.NewLimiter(50<<20, stint.LimiterConfig{}) // 50 MiB/s over all uploads
	transfer.Handle(q, transfer.Config{Rate: &rate})
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, stint.New(2, stint.Config{})) }()

	receipts, err := transfer.Add(ctx, q, queue.Options{Tier: stint.High},
		transfer.Upload{Path: path, To: server.URL + "/files/", Verify: true})
	if err != nil {
		panic(err)
	}
	task, err := q.Wait(ctx, receipts[0].ID)
	if err != nil {
		panic(err)
	}
	upload, err := transfer.Of(task)
	if err != nil {
		panic(err)
	}
	fmt.Println(upload.Name, upload.State, upload.Done, "of", upload.Size, "bytes")
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		panic(err)
	}
	// Output:
	// hello.txt succeeded 5 of 5 bytes
}
