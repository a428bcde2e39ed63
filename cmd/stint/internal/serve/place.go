package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9/logging"

	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
	"github.com/stintgo/stint/queue/relocate"
)

// Place returns the store of a server: that in the directory of the server, or that on a
// database server, by its URL, and its group there, "" for the default group. With exists, the
// directory must have a store.
func Place(name, group string, exists bool, log *slog.Logger) (relocate.Place, error) {
	switch scheme, _, found := strings.Cut(name, "://"); {
	case !found && schemaOf(group) != "":
		return relocate.Place{}, fmt.Errorf("%s is a directory, which has no groups", name)
	case !found:
		dir := filepath.Join(name, storeName)
		if _, err := os.Stat(dir); exists && errors.Is(err, fs.ErrNotExist) {
			return relocate.Place{}, fmt.Errorf("%s is not the directory of a server: it has no %s/", name, storeName)
		}
		return filestore.Place(dir, filestore.Config{Logger: log})
	case scheme == "postgres", scheme == "postgresql":
		return pgstore.Place(name, pgstore.Config{Schema: schemaOf(group), Logger: log})
	case scheme == "redis", scheme == "rediss", scheme == "unix":
		logging.Disable() // the client's own log; what fails is logged with its remedy
		return redisstore.Place(name, redisstore.Config{Prefix: prefixOf(group), Logger: log})
	default:
		return relocate.Place{}, fmt.Errorf("%.20q…: a store is the directory of a server, or a URL that begins with "+
			"postgres://, redis:// or rediss://", scheme)
	}
}
