package shared

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/dbserver"
)

// tokens is the list of those that are free.
const tokens = "tokens"

// redisLimit is a list of tokens in Redis: a caller that pops a token from the empty
// list waits. Callers are served in the order of arrival.
type redisLimit struct{ client *redis.Client }

// startRedis starts a server that keeps nothing on disk, with all tokens free.
func startRedis(t *turn) (address string, err error) {
	address, stop, err := dbserver.RedisSocket(t.dir)
	if err != nil {
		return "", err
	}
	t.Cleanup(stop)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: address})
	defer func() { _ = client.Close() }()
	for range t.order.Slots {
		if err := client.LPush(context.Background(), tokens, "x").Err(); err != nil {
			return "", err
		}
	}
	return address, nil
}

// openRedis has a connection for each caller: one that waits has it for itself.
func openRedis(address string, _, callers int) (limit, error) {
	return redisLimit{redis.NewClient(&redis.Options{
		Network: "unix", Addr: address, PoolSize: callers + 1, ReadTimeout: -1,
	})}, nil
}

func (l redisLimit) caller() (caller, error) { return l, nil }

func (l redisLimit) acquire(stint.Priority) error {
	return l.client.BLPop(context.Background(), 0, tokens).Err()
}

func (l redisLimit) release() error { return l.client.LPush(context.Background(), tokens, "x").Err() }
