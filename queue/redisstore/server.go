package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// checkServer returns an error if the server may remove keys of the store by itself, and
// logs if it does not keep them on disk. A server that does not tell is not checked.
func (r *rows) checkServer(ctx context.Context, log *slog.Logger) error {
	info, err := interruptible(ctx, r, func() (string, error) {
		c, err := r.client.primary(ctx, r.leader)
		if err != nil {
			return "", err
		}
		return c.Info(ctx).Result()
	})
	if err != nil {
		log.Debug("the server does not tell its configuration", slog.Any("error", err))
		return nil
	}
	policy := field(info, "maxmemory_policy")
	if limit := field(info, "maxmemory"); strings.HasPrefix(policy, "allkeys") && limit != "0" {
		return fmt.Errorf("the server removes keys when its memory is full, and with them all tasks "+
			"(maxmemory-policy %s): set maxmemory-policy noeviction", policy)
	}
	if field(info, "aof_enabled") == "0" {
		log.Warn("the server has no append-only file, so tasks do not survive its end: set appendonly yes")
	}
	return nil
}

// field returns a field of the answer to INFO, "" if there is none.
func field(info, name string) string {
	_, rest, found := strings.Cut(info, "\n"+name+":")
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\r")
	return value
}
