package serve

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9/logging"

	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
	"github.com/stintgo/stint/queue/relocate"
)

// Place returns the store of a server: that in the directory of the server, or that on a
// database server, by its URL, and its group there, "" for the default group.
func Place(name, group string, log *slog.Logger) (relocate.Place, error) {
	switch scheme, _, found := strings.Cut(name, "://"); {
	case !found && schemaOf(group) != "":
		return relocate.Place{}, fmt.Errorf("%s is a directory, which has no groups", name)
	case !found:
		return filestore.Place(filepath.Join(name, storeName), filestore.Config{Logger: log})
	case scheme == "postgres", scheme == "postgresql":
		return pgstore.Place(name, pgstore.Config{Schema: schemaOf(group), Logger: log})
	case scheme == "redis", scheme == "rediss", scheme == "unix":
		logging.Disable() // the log of the client library: errors are logged here, with a remedy
		return redisstore.Place(name, redisstore.Config{Prefix: prefixOf(group), Logger: log})
	default:
		return relocate.Place{}, fmt.Errorf("%.20q…: a store is the directory of a server, or a URL that begins with "+
			"postgres://, redis:// or rediss://", scheme)
	}
}
