package journal

import "slices"

// Stored is the rows of a journal as they are stored: changes that have not been applied are
// not visible. It is safe for concurrent use.
type Stored struct{ rows Rows }

// Get returns the value of a key, nil if there is none.
func (s Stored) Get(key string) ([]byte, error) { return s.rows.Get(key) }

// Read is that of [KeyReader], and omits no keys. Without one, each call returns one value.
func (s Stored) Read(keys []string, most int) ([][]byte, error) {
	rows, ok := s.rows.(KeyReader)
	if !ok {
		value, err := s.rows.Get(keys[0])
		return [][]byte{value}, err
	}
	values, err := rows.ReadKeys(keys, most)
	for _, value := range values {
		most -= len(value)
	}
	if most > 0 { // the other keys have no values
		values = append(values, make([][]byte, len(keys)-len(values))...)
	}
	return values, err
}

// Scan calls fn in ascending order for all keys that begin with letter, without the letter,
// until fn returns an error.
func (s Stored) Scan(letter string, fn func(key string, value []byte) error) (err error) {
	return s.ScanFrom(letter, func(key string, value []byte) error { return fn(key[len(letter):], value) })
}

// ScanFrom is Scan for the keys that begin with the first letter of from, and are not before
// from. fn is given whole keys.
func (s Stored) ScanFrom(from string, fn func(key string, value []byte) error) (err error) {
	next := string(rune(from[0] + 1))
	scanErr := s.rows.Scan(from, next, false, func(key string, value []byte) bool {
		err = fn(key, value)
		return err == nil
	})
	if err == nil {
		err = scanErr
	}
	return err
}

// find returns the rows of keys, which ascend, in one call, until their values have most
// bytes. It ignores errors: then it finds fewer.
func (s Stored) find(keys []string, most int) []Change {
	if rows, ok := s.rows.(KeyReader); ok {
		return readKeys(rows, keys, most)
	}
	return scanFor(s.rows, keys, most)
}

// readKeys is find for rows that read named keys.
func readKeys(rows KeyReader, keys []string, most int) (found []Change) {
	values, _ := rows.ReadKeys(keys, most)
	for i, value := range values {
		if value != nil {
			found = append(found, Change{Key: keys[i], Value: value})
		}
	}
	return found
}

// scanFor is find by one scan of the range in which the keys are.
func scanFor(rows Rows, keys []string, most int) (found []Change) {
	size, last := 0, keys[len(keys)-1]
	_ = rows.Scan(keys[0], last+"\x00", false, func(key string, value []byte) bool {
		for keys[0] < key {
			keys = keys[1:]
		}
		if keys[0] == key {
			found = append(found, Change{Key: key, Value: slices.Clone(value)})
			size += len(value)
		}
		return key != last && size < most
	})
	return found
}
