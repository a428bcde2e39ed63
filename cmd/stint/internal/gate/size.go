package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize parses a number of bytes: 4096, 500M, 1.5G, 2GiB, 1GB. K, M, G and T are
// powers of 1024, with or without iB after them; KB, MB, GB and TB are powers of 1000.
// Letter case does not matter.
func ParseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "kKmMgGtTiIbB")
	unit, ok := sizeUnit(strings.ToLower(text[len(number):]))
	value, err := strconv.ParseFloat(number, 64)
	size := value * unit
	// This form refuses NaN too.
	if !ok || err != nil || !(size >= 0 && size < math.MaxInt64) {
		return 0, fmt.Errorf("size %q: give bytes, with K, M, G or T for powers of 1024, as in 500M or 1.5G", text)
	}
	return int64(size), nil
}

func sizeUnit(unit string) (float64, bool) {
	if unit == "" || unit == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgt", unit[0]) + 1
	if power == 0 {
		return 0, false
	}
	switch unit[1:] {
	case "", "ib":
		return math.Pow(1024, float64(power)), true
	case "b":
		return math.Pow(1000, float64(power)), true
	}
	return 0, false
}
