package durable

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const subject = "tasks"

// natsQueue is JetStream embedded in this process: a stream with the policy of a
// work queue, in files.
type natsQueue struct {
	turn   *turn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openNATSSynced(t *turn) (keeper, error) { return openJetStream(t, true) }

// openNATS has the server sync every two minutes, as it does by default.
func openNATS(t *turn) (keeper, error) { return openJetStream(t, false) }

func openJetStream(t *turn, synced bool) (keeper, error) {
	s, err := server.NewServer(&server.Options{
		JetStream: true, StoreDir: filepath.Join(t.dir, "nats"), SyncAlways: synced,
		DontListen: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("the NATS server does not get ready")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return nil, err
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(4*batch))
	if err != nil {
		return nil, err
	}
	stream, err := js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: "TASKS", Subjects: []string{subject},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	return &natsQueue{t, js, stream}, err
}

func (q *natsQueue) submit(stamp int64) error {
	_, err := q.js.Publish(context.Background(), subject, newPayload(stamp))
	return err
}

func (q *natsQueue) submitBatch(n int) error {
	answers := make([]jetstream.PubAckFuture, n)
	for i := range answers {
		var err error
		if answers[i], err = q.js.PublishAsync(subject, newPayload(0)); err != nil {
			return err
		}
	}
	for _, answer := range answers {
		select {
		case <-answer.Ok():
		case err := <-answer.Err():
			return err
		}
	}
	return nil
}

// work settles with DoubleAck, which waits for the server's answer. Ack would
// not, and lose some of them with the connection.
func (q *natsQueue) work(handled func(stamp int64)) error {
	consumer, err := q.stream.CreateConsumer(context.Background(), jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 4 * batch,
	})
	if err != nil {
		return err
	}
	messages := make(chan jetstream.Msg)
	for range workers {
		go func() {
			for m := range messages {
				handled(stampOf(m.Data()))
				_ = m.DoubleAck(context.Background()) // what is not settled is still kept
			}
		}()
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) { messages <- m }, jetstream.PullMaxMessages(batch))
	if err != nil {
		return err
	}
	q.turn.Cleanup(func() {
		consuming.Stop()
		<-consuming.Closed()
		close(messages)
	})
	return nil
}

func (q *natsQueue) settled() error { return untilNone(q.unsettled) }

func (q *natsQueue) unsettled() (int, error) {
	info, err := q.stream.Info(context.Background())
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs), nil
}
