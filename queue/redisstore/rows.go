package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
)

// chooseAnother is what to do about keys of another program.
const chooseAnother = "choose another Prefix or, for stint serve, another database of the server (redis://HOST/1)"

// format is the version of the format of all keys. A change of the format increments it, and
// lead.lua converts the version before: in format 1 a row of the lease log has one entry. A
// store reads no other.
const format = "2"

const (
	// pageWithin is how long the server may take for a page of Scan.
	pageWithin = 10 * time.Second
	// replicasWithin is how long one call waits for replicas.
	replicasWithin = time.Second
	// A page of Scan has at most pageKeys keys, and ends with the value that exceeds
	// pageBytes. The first one has pageFirst keys, because the size of values is not known.
	pageFirst = 10
	pageKeys  = 1000
	pageBytes = 1 << 20
)

// rows is a [dbrows.DB] on Redis.
type rows struct {
	client  client
	prefix  string // of all keys
	leader  string // key of the hash of the leader
	leases  string // key of the hash of the lease log
	want    int    // replicas
	scripts scripts
	id      string // distinguishes this process from others of the same epoch, after a loss of data
	giveUp  func() // ends the attempts of Open
	// existing says that Lead does not make the store if there is none.
	existing bool

	full atomic.Bool // whether the last write found the memory of the server full

	calls sync.WaitGroup // of the client
}

var _ dbrows.DB = (*rows)(nil)

func newRows(c client, cfg Config, giveUp func()) *rows {
	prefix := "{" + cfg.Prefix + "}:"
	return &rows{
		client: c, prefix: prefix, leader: prefix + "leader", leases: prefix + "leases", want: cfg.Replicas,
		scripts: newScripts(), id: rand.Text(), giveUp: giveUp,
	}
}

// family returns the key of the hash that has the rows whose keys begin with a letter. A
// hash for each letter makes the sorted set of all keys unnecessary, which would need a
// third of the memory: Scan reads the fields of a hash and sorts them.
func (r *rows) family(letter byte) string { return r.prefix + "rows:" + string(rune(letter)) }

// Lead is as [dbrows.DB] says.
func (r *rows) Lead(ctx context.Context, as queue.Leader, lease time.Duration) (dbrows.Term, error) {
	term, err := r.lead(ctx, as, lease)
	if final := (refusal{}); errors.As(err, &final) {
		r.giveUp()
	}
	return term, err
}

func (r *rows) lead(ctx context.Context, as queue.Leader, lease time.Duration) (t dbrows.Term, err error) {
	keys := []string{r.leader, r.leases}
	for letter := byte('a'); letter <= 'z'; letter++ {
		keys = append(keys, r.family(letter))
	}
	if r.existing {
		found, err := interruptible(ctx, r, func() (int64, error) { return r.client.Exists(ctx, r.leader).Result() })
		if err != nil {
			return t, err
		}
		if found == 0 {
			return t, refusal{fmt.Errorf("%w: there is no store: it would have a key %s", queue.ErrInvalid, r.leader)}
		}
	}
	answer, err := r.run(ctx, r.want, r.scripts.lead, keys, format, r.id, as.Name, lease.Milliseconds(), as.Contact,
		dbrows.LeaseOfNow.Milliseconds())
	if err != nil {
		return t, err
	}
	switch words := texts(answer); words[0] {
	case "leads":
		t, err = newTerm(words[1], words[2])
		t.Vacant = time.Duration(number(words[3])) * time.Millisecond
		r.full.Store(len(words) > 4)
		return t, err
	case "led":
		since, left := number(words[2]), number(words[3])
		return t, &queue.LedError{Leader: queue.Leader{
			Name: words[1], Since: time.UnixMilli(since).UTC(), Left: time.Duration(left) * time.Millisecond,
			Contact: words[4],
		}}
	case "type":
		return t, refusal{fmt.Errorf("the key %s is a %s of another program: %s", words[1], words[2], chooseAnother)}
	case "headless":
		return t, refusal{fmt.Errorf("there is a key %s, but no valid %s: another program uses these keys, or the "+
			"server has lost some: restore its data from a copy, or %s", words[1], r.leader, chooseAnother)}
	case "format":
		return t, refusal{fmt.Errorf("the store has format %s, and this program reads those up to %s: use the version of "+
			"the program that made the store, or a newer one", words[1], format)}
	default:
		return t, fmt.Errorf("unexpected answer %q", words)
	}
}

// Renew is as [dbrows.DB] says.
func (r *rows) Renew(ctx context.Context, epoch uint32, lease time.Duration) error {
	return r.write(ctx, 0, r.scripts.renew, epoch, []string{r.leader}, decimal(epoch), r.id, lease.Milliseconds())
}

// Now is as [dbrows.DB] says.
func (r *rows) Now(ctx context.Context) (time.Time, error) {
	return interruptible(ctx, r, func() (time.Time, error) {
		c, err := r.client.primary(ctx, r.leader) // of a cluster: its servers may have different clocks
		if err != nil {
			return time.Time{}, err
		}
		now, err := c.Time(ctx).Result()
		return now.UTC(), err
	})
}

// Resign is as [dbrows.DB] says.
func (r *rows) Resign(ctx context.Context, epoch uint32) error {
	err := r.Renew(ctx, epoch, 0)
	if errors.Is(err, dbrows.ErrFenced) || errors.Is(err, dbrows.ErrLost) {
		return nil
	}
	return err
}

// Term is as [dbrows.DB] says. If batches wait for replicas, Term does so as well, because
// its answer confirms a batch.
func (r *rows) Term(ctx context.Context) (t dbrows.Term, err error) {
	var answer []any
	if r.want > 0 {
		answer, err = r.run(ctx, r.want, r.scripts.touch, []string{r.leader})
	} else {
		answer, err = interruptible(ctx, r, func() ([]any, error) {
			return r.client.HMGet(ctx, r.leader, "epoch", "id", "batch").Result()
		})
	}
	if err != nil {
		return t, err
	}
	words := texts(answer)
	if words[0] == "" {
		return t, errNothing
	}
	if t, err = newTerm(words[0], words[2]); err == nil && words[1] != r.id {
		err = dbrows.ErrFenced
	}
	return t, err
}

// Apply is as [dbrows.DB] says.
func (r *rows) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	b := newBatch(changes)
	keys := append(make([]string, 0, 1+len(b.families)), r.leader)
	args := make([]any, 0, 4+2*len(b.families)+2*len(changes))
	args = append(args, decimal(t.Epoch), r.id, decimal(t.Batch-1), decimal(t.Batch))
	for _, f := range b.families {
		keys = append(keys, r.family(f.letter))
		args = append(args, f.set, f.removed)
	}
	return r.write(ctx, r.want, r.scripts.apply, t.Epoch, keys, b.append(args)...)
}

// errFull is why the store accepts no tasks.
var errFull = errors.New(
	"the memory of the server is full: raise maxmemory, remove other data, or cancel and purge tasks")

// Full is as [dbrows.DB] says.
func (r *rows) Full() error {
	if r.full.Load() {
		return errFull
	}
	return nil
}

// Get is as [dbrows.DB] says.
func (r *rows) Get(ctx context.Context, key string) ([]byte, error) {
	return interruptible(ctx, r, func() ([]byte, error) {
		value, err := r.client.HGet(ctx, r.family(key[0]), key).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil, nil
		}
		return value, err
	})
}

// ReadKeys is as [dbrows.DB] says.
func (r *rows) ReadKeys(ctx context.Context, keys []string, most int) ([][]byte, error) {
	args := make([]any, 0, 1+len(keys))
	args = append(args, most)
	for _, key := range keys {
		args = append(args, key)
	}
	answer, err := r.run(ctx, 0, r.scripts.readKeys, []string{r.family(keys[0][0])}, args...)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(answer))
	for i, value := range answer {
		if value, ok := value.(string); ok {
			values[i] = []byte(value)
		}
	}
	return values, nil
}

// Scan is as [dbrows.DB] says. The keys of a letter are in memory meanwhile.
func (r *rows) Scan(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) error {
	letters := between(from, to)
	if down {
		slices.Reverse(letters)
	}
	for _, letter := range letters {
		fields, err := r.list(ctx, letter, from, to)
		if down {
			slices.Reverse(fields)
		}
		for err == nil && len(fields) > 0 {
			page := firstPage(fields)
			var values []any
			if values, err = r.read(ctx, letter, page); err != nil {
				break
			}
			for i, value := range values {
				if value, ok := value.(string); ok && !fn(page[i], []byte(value)) {
					return nil
				}
			}
			fields = fields[len(page):]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sized is a field of a hash and its size.
type sized struct {
	key  string
	size int // of its value, in bytes
}

// firstPage returns the keys of the first fields, at least one: up to pageKeys, and up to the
// value that exceeds pageBytes.
func firstPage(fields []sized) (keys []string) {
	for bytes := 0; len(keys) < min(pageKeys, len(fields)) && bytes < pageBytes; {
		f := fields[len(keys)]
		keys, bytes = append(keys, f.key), bytes+f.size
	}
	return keys
}

// between returns the first letters that keys from ≤ key < to may have.
func between(from, to string) (letters []byte) {
	if to == "" || from >= to {
		return nil
	}
	first := 0
	if from != "" {
		first = int(from[0])
	}
	for letter := first; letter <= int(to[0]); letter++ {
		if letter < int(to[0]) || len(to) > 1 {
			letters = append(letters, byte(letter))
		}
	}
	return letters
}

// list returns the fields from ≤ key < to with a first letter, in ascending order. HSCAN
// sends the values too, which it can omit since Redis 7.4 only, so the number of fields that
// it is asked for follows their size.
func (r *rows) list(ctx context.Context, letter byte, from, to string) (fields []sized, err error) {
	count, cursor := pageFirst, uint64(0)
	for {
		page, next, err := r.scan(ctx, letter, cursor, count)
		if err != nil {
			return nil, err
		}
		bytes := 0
		for i := 0; i+1 < len(page); i += 2 {
			key, size := page[i], len(page[i+1])
			if bytes += size; from <= key && key < to {
				fields = append(fields, sized{key, size})
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
		count = min(max(pageBytes*len(page)/2/max(bytes, 1), pageFirst), pageKeys)
	}
	slices.SortFunc(fields, func(a, b sized) int { return strings.Compare(a.key, b.key) })
	// A hash that is resized meanwhile returns some fields twice.
	return slices.CompactFunc(fields, func(a, b sized) bool { return a.key == b.key }), nil
}

// scan returns about count fields and their values in turn, and the next cursor.
func (r *rows) scan(
	ctx context.Context, letter byte, cursor uint64, count int,
) (page []string, next uint64, err error) {
	ctx, stop := context.WithTimeout(ctx, pageWithin)
	defer stop()
	type answer struct {
		page []string
		next uint64
	}
	a, err := interruptible(ctx, r, func() (a answer, err error) {
		a.page, a.next, err = r.client.HScan(ctx, r.family(letter), cursor, "", int64(count)).Result()
		return a, err
	})
	return a.page, a.next, err
}

// read returns the values of keys, nil for those without.
func (r *rows) read(ctx context.Context, letter byte, keys []string) ([]any, error) {
	ctx, stop := context.WithTimeout(ctx, pageWithin)
	defer stop()
	return interruptible(ctx, r, func() ([]any, error) {
		return r.client.HMGet(ctx, r.family(letter), keys...).Result()
	})
}

// putDigits is the length of the number before each row of the lease log, which
// putleases.lua compares as text, because Lua's numbers are exact up to 53 bits only.
const putDigits = 16

// PutLeases is as [dbrows.DB] says.
func (r *rows) PutLeases(ctx context.Context, epoch uint32, put uint64, rows []dbrows.LeaseRow) error {
	args := append(make([]any, 0, 3+2*len(rows)), decimal(epoch), r.id, fmt.Sprintf("%0*x", putDigits, put))
	for _, row := range rows {
		args = append(args, row.Number, row.Entries)
	}
	return r.write(ctx, r.want, r.scripts.putLeases, epoch, []string{r.leader, r.leases}, args...)
}

// Leases is as [dbrows.DB] says.
func (r *rows) Leases(ctx context.Context, fn func(dbrows.LeaseRow)) error {
	for cursor := uint64(0); ; {
		fields, err := interruptible(ctx, r, func() (fields []string, err error) {
			fields, cursor, err = r.client.HScan(ctx, r.leases, cursor, "", pageKeys).Result()
			return fields, err
		})
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(fields); i += 2 {
			row, err := strconv.Atoi(fields[i])
			if err != nil || row < 1 || len(fields[i+1]) < putDigits {
				return fmt.Errorf("%s has a field %q, which is not of this program: remove it", r.leases, fields[i])
			}
			fn(dbrows.LeaseRow{Number: row, Entries: []byte(fields[i+1][putDigits:])})
		}
		if cursor == 0 {
			return nil
		}
	}
}

// Close is as [dbrows.DB] says. It ends calls that were interrupted.
func (r *rows) Close() error {
	err := r.client.Close()
	r.calls.Wait()
	return err
}

// interruptible makes a call of the client, and returns early when ctx ends: the client
// itself notices only the deadline of a context while it waits for an answer. The call may
// still be carried out.
func interruptible[T any](ctx context.Context, r *rows, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	r.calls.Go(func() {
		value, err := do()
		done <- outcome{value, err}
	})
	select {
	case o := <-done:
		return o.value, explain(o.err)
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// newTerm parses a term.
func newTerm(epoch, batch string) (t dbrows.Term, err error) {
	e, err := strconv.ParseUint(epoch, 10, 32)
	if err != nil {
		return t, fmt.Errorf("the epoch of the store: %w", err)
	}
	t.Epoch = uint32(e)
	if t.Batch, err = strconv.ParseUint(batch, 10, 64); err != nil {
		return t, fmt.Errorf("the last batch of the store: %w", err)
	}
	return t, nil
}

// texts returns the strings of an answer, "" for nil.
func texts(answer []any) []string {
	words := make([]string, len(answer))
	for i, word := range answer {
		words[i], _ = word.(string)
	}
	return words
}

func decimal[N uint32 | uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }

// number returns the value of a number that a script has written, 0 if it is damaged.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}
