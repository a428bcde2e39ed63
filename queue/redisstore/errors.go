package redisstore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// refusal is an error of Lead that another attempt would not change.
type refusal struct{ error }

// Unwrap returns the reason.
func (r refusal) Unwrap() error { return r.error }

// adviceTable is what the errors of a server mean, by the word with which they begin. An
// error that is final does not go away by itself.
var adviceTable = []struct {
	word, advice string
	final        bool
}{
	{"WRONGPASS", "the server refuses the user or the password: correct them in the URL", true},
	{"NOAUTH", "the server requires a password: add it to the URL, as in redis://:password@host", true},
	// The server refuses long commands before it looks at them.
	{"ERR Protocol error: unauthenticated", "the server requires a password: add it to the URL", true},
	{"ERR AUTH", "the server has no password, but the URL has one: remove it", true},
	{"NOPERM", "the user may not do what the store needs: allow its keys and commands with ACL SETUSER", true},
	{"READONLY", "the server is a read-only replica: name its primary in the URL, or the Sentinels", true},
	{"LOADING", "the server is still loading its data: wait", false},
	{"OOM", "the memory of the server is full: raise maxmemory, or remove other data", false},
	{"MISCONF", "the server cannot write its data to disk: make room there, and see its log", false},
	{"NOREPLICAS", "the server has fewer replicas than min-replicas-to-write says: start them", false},
	{"CLUSTERDOWN", "the cluster is down: see CLUSTER INFO", false},
	{"MASTERDOWN", "the server is a replica without its primary: see INFO replication", false},
	{"MOVED", "the server belongs to a cluster: add the parameter addr to the URL, with one of its nodes", true},
	{"WRONGTYPE", "another program has written to a key of the store: choose another Prefix or database", false},
	{"ERR DB index", "the server has no such database: correct the number at the end of the URL", true},
}

// inScript reports whether an error in a script begins with a word. Redis 6 puts the place in
// the script before it, and keeps the minus sign of its protocol before some.
func inScript(err error, word string) bool {
	_, said, found := strings.Cut(err.Error(), "@user_script:")
	return found && (strings.Contains(said, " -"+word+" ") || strings.Contains(said, " "+word+" "))
}

// explain adds to an error of the client what it means and what to do.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		for _, a := range adviceTable {
			if redis.HasErrorPrefix(err, a.word) || strings.HasPrefix(err.Error(), a.word) || inScript(err, a.word) {
				err = fmt.Errorf("%s: %w", a.advice, err)
				if a.final {
					return refusal{err}
				}
				return err
			}
		}
		return err
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Errorf("the server cannot be reached: start it, or correct the address: %w", err)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the connection was closed: the server ends, speaks TLS (rediss://), or is not Redis: %w", err)
	}
	return err
}
