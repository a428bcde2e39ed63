package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// checkServer returns an error if the server may remove keys of the store by itself, and
// logs if it does not keep on disk what it confirms. What a server does not say within 2 s is
// not checked: this process leads already, and nothing else runs until the store is open.
func (r *rows) checkServer(ctx context.Context, log *slog.Logger) error {
	const within = 2 * time.Second
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	type said struct{ info, sync string }
	of, err := interruptible(ctx, r, func() (of said, err error) {
		c, err := r.client.primary(ctx, r.leader)
		if err != nil {
			return of, err
		}
		if found, err := c.ConfigGet(ctx, appendfsync).Result(); err == nil { // many services do not permit it
			of.sync = found[appendfsync]
		}
		of.info, err = c.Info(ctx).Result()
		return of, err
	})
	if err != nil {
		log.Debug("the server does not say how it is configured", slog.Any("error", err))
		return nil
	}
	policy := field(of.info, "maxmemory_policy")
	if limit := field(of.info, "maxmemory"); strings.HasPrefix(policy, "allkeys") && limit != "0" {
		return fmt.Errorf("the server removes keys when its memory is full, and with them all tasks "+
			"(maxmemory-policy %s): set maxmemory-policy noeviction", policy)
	}
	switch {
	case field(of.info, "aof_enabled") == "0":
		log.Warn("the server has no append-only file, so tasks do not survive its end: set appendonly yes")
	case of.sync == "everysec", of.sync == "no":
		log.Warn("the server confirms changes before they are on disk, so a loss of power loses the last of them: "+
			"set appendfsync always, or accept that", slog.String(appendfsync, of.sync))
	}
	return nil
}

// appendfsync is the parameter for when the server syncs its append-only file.
const appendfsync = "appendfsync"

// field returns a field of the answer to INFO, "" if there is none.
func field(info, name string) string {
	_, rest, found := strings.Cut(info, "\n"+name+":")
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\r")
	return value
}
