package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/stintgo/stint/queue"
)

// target is a server, a cluster, or the Sentinels of a server.
type target struct {
	name    string // for messages: the URL without user, password and most parameters
	connect func() client
}

// client is a client of any of these.
type client interface {
	redis.UniversalClient

	// primary returns a client of the server that has a key.
	primary(ctx context.Context, key string) (*redis.Client, error)
}

// parse parses a URL in one of the forms of the package documentation.
func parse(text string) (target, error) {
	u, err := url.Parse(text)
	if err != nil {
		if syntax, ok := errors.AsType[*url.Error](err); ok {
			err = syntax.Err // the error itself contains the URL, and so the password
		}
		return target{}, invalid(err)
	}
	t := target{name: describe(u)}
	switch query := u.Query(); {
	case query.Has("master_name"):
		t.connect, err = parseSentinel(u)
	case query.Has("addr"):
		t.connect, err = parseCluster(u)
	default:
		t.connect, err = parseServer(u)
	}
	if err != nil {
		return target{}, invalid(err)
	}
	return t, nil
}

func invalid(err error) error {
	return fmt.Errorf("%w: the URL of the Redis server: %s; it is like redis://user:password@host:6379/0",
		queue.ErrInvalid, strings.TrimPrefix(err.Error(), "redis: "))
}

// describe returns a URL without what may be secret. Databases of one server have different
// names: stores are compared by them.
func describe(u *url.URL) string {
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	hosts := append([]string{u.Host}, u.Query()["addr"]...)
	number := u.Query().Get("db") // the client prefers it to the path
	if number != "" {
		plain.RawQuery = "db=" + url.QueryEscape(number)
	}
	text := plain.String()
	if name := u.Query().Get("master_name"); name != "" {
		text = fmt.Sprintf("%s of the Sentinels %s", name, strings.Join(hosts, ", "))
		if number = cmp.Or(number, strings.Trim(u.Path, "/"), "0"); number != "0" {
			text = fmt.Sprintf("database %s of %s", number, text)
		}
		return text
	}
	if len(hosts) > 1 {
		return "the cluster " + strings.Join(hosts, ", ")
	}
	return text
}

// one is the number of attempts of the client: dbrows repeats calls, because it knows which
// of them may be repeated.
const one = -1

// unlimited is the time for an answer: contexts limit it.
const unlimited = -1

func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func parseServer(u *url.URL) (func() client, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = one, 1, true, true
	o.ReadTimeout, o.WriteTimeout = cmp.Or(o.ReadTimeout, unlimited), cmp.Or(o.WriteTimeout, unlimited)
	o.MaintNotificationsConfig = noNotifications()
	return func() client { return single{redis.NewClient(o)} }, nil
}

func parseCluster(u *url.URL) (func() client, error) {
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, err
	}
	if strings.Trim(u.Path, "/0") != "" {
		return nil, fmt.Errorf("a cluster has no database %q", u.Path)
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = one, 1, true, true
	o.ReadTimeout, o.WriteTimeout = cmp.Or(o.ReadTimeout, unlimited), cmp.Or(o.WriteTimeout, unlimited)
	o.MaintNotificationsConfig = noNotifications()
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false // a replica may be behind
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each node
	}
	return func() client { return cluster{redis.NewClusterClient(o)} }, nil
}

func parseSentinel(u *url.URL) (func() client, error) {
	query := u.Query()
	name, password := query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	plain := *u
	plain.RawQuery = query.Encode()
	o, err := redis.ParseFailoverURL(plain.String())
	if err != nil {
		return nil, err
	}
	// The client means the user of the Sentinels by the user of the URL; here, as in all
	// forms, it is that of the server.
	o.Username, o.Password = o.SentinelUsername, o.SentinelPassword
	o.SentinelUsername, o.SentinelPassword = name, password
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.DisableIdentity = one, 1, true, true
	o.ReadTimeout, o.WriteTimeout = cmp.Or(o.ReadTimeout, unlimited), cmp.Or(o.WriteTimeout, unlimited)
	o.ReplicaOnly, o.RouteByLatency, o.RouteRandomly, o.UseDisconnectedReplicas = false, false, false, false
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of each server
	}
	return func() client { return single{redis.NewFailoverClient(o)} }, nil
}

// single is a client of one server.
type single struct{ *redis.Client }

func (s single) primary(context.Context, string) (*redis.Client, error) { return s.Client, nil }

// cluster is a client of a cluster.
type cluster struct{ *redis.ClusterClient }

func (c cluster) primary(ctx context.Context, key string) (*redis.Client, error) {
	return c.MasterForKey(ctx, key)
}
