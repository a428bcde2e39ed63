package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/command"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/transfer"

	"github.com/stintgo/stint/bench/measure"
)

// The clients that send a file on the disk to the same server, Stint's.
const (
	tusjs      = "tus-js-client"
	tusjsParts = "tus-js-client, four parallel uploads"
	oursLanes  = "stint, four lanes"
)

// clients measures how fast clients send a large file. Stint's sends the CRC32C of each chunk,
// which the server compares; tus-js-client sends none.
func (s *Systems) clients() measure.Case {
	return measure.Case{
		Name: "1 GiB from the disk, by different clients", Ours: ours,
		Readings: []measure.Reading{{Name: "rate", Unit: "MB/s"}},
		Goals:    []string{"rate ≥ 1.9× " + tusjs},
		Subjects: []measure.Subject{
			{Name: ours, Probe: s.sending(1, viaStint)},
			{Name: oursLanes, Probe: s.sending(parts, viaStint)},
			{Name: tusjs, Probe: s.sending(1, s.viaNode)},
			{Name: tusjsParts, Probe: s.sending(parts, s.viaNode)},
		},
	}
}

// via sends a file in some parts at once, and returns the time that it took.
type via func(path, url string, parts int) (time.Duration, error)

// sending measures a client.
func (s *Systems) sending(parts int, send via) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		size := int64(large)
		if st.Once {
			size = 8 << 20
		}
		dir, err := os.MkdirTemp(s.dir, "clients-")
		if err != nil {
			return nil, err
		}
		st.Cleanup(func() { _ = os.RemoveAll(dir) })
		made, err := newStint(filepath.Join(dir, "uploads"))
		if err != nil {
			return nil, err
		}
		front := httptest.NewServer(made.handler)
		st.Cleanup(func() {
			front.Close()
			_ = made.close()
		})
		path := filepath.Join(dir, "file")
		if err := s.write(path, size); err != nil {
			return nil, err
		}
		took, err := send(path, front.URL+"/files/", parts)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(filepath.Join(dir, "uploads", "file"))
		if err == nil && info.Size() != size {
			err = fmt.Errorf("%d bytes arrived of %d", info.Size(), size)
		}
		return measure.Values{"rate": float64(size) / 1e6 / took.Seconds()}, err
	}
}

// write makes a file that is in memory and on the disk.
func (s *Systems) write(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, &content{s.source.piece, size})
	return errors.Join(err, f.Sync(), f.Close())
}

// viaStint uploads by package transfer, with tasks in memory.
func viaStint(path, url string, parts int) (time.Duration, error) {
	ctx, stop := context.WithCancel(context.Background())
	store := memstore.New(memstore.Config{})
	q := queue.New(store, queue.Config{})
	transfer.Handle(q, transfer.Config{})
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, stint.New(1, stint.Config{})) }()
	took, err := timed(func() error {
		receipts, err := transfer.Add(ctx, q, queue.Options{}, transfer.Upload{Path: path, To: url, Lanes: parts})
		if err != nil {
			return err
		}
		task, err := q.Wait(ctx, receipts[0].ID)
		if err == nil && task.State != queue.Succeeded {
			err = fmt.Errorf("the upload is %s: %s", task.State, task.Error)
		}
		return err
	})
	stop()
	if ran := <-ended; err == nil && !errors.Is(ran, context.Canceled) {
		err = ran
	}
	return took, errors.Join(err, store.Close())
}

// viaNode uploads by tus-js-client in a process of Node, which times itself.
func (s *Systems) viaNode(path, url string, parts int) (time.Duration, error) {
	said, err := command.Run(s.node, nil, "node", "tus.mjs", url, path, strconv.Itoa(parts))
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(said, 64)
	return time.Duration(seconds * float64(time.Second)), err
}
