package main

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/stintgo/stint"
)

// text matches a value with parameters, or parameters alone, of structured fields (RFC
// 9651). For fields that are not used here it matches up to their end.
const text = `(?:"(?:[^"\\]|\\.)*"|[^",])+`

// member matches the first member of a dictionary of structured fields: its key, its
// value if it has one, with parameters, and the comma before the next.
var member = regexp.MustCompile(`^[ \t]*([a-z*][a-z0-9_.*-]*)(?:=(` + text + `)|;` + text + `)?[ \t]*(,|$)`)

// priorityOf returns the tier of a request with these headers. Priority states the
// urgency, from u=0 to u=7, where 3 is the default and 7 is for background work (RFC
// 9218). There are seven tiers, so 6 and 7 are both the lowest:
//
//	u=0 highest, 1 higher, 2 high, 3 normal, 4 low, 5 lower, 6 and 7 lowest
//
// An invalid number or dictionary is ignored, as the RFC requires. Every client may state
// that its requests are urgent: to prevent that, set the header in a proxy.
func priorityOf(h http.Header) stint.Priority {
	tier := stint.Normal
	for rest, more := strings.Join(h.Values("Priority"), ","), true; more; {
		m := member.FindStringSubmatch(rest)
		if m == nil {
			return stint.Normal
		}
		if m[1] == "u" {
			tier = tierOf(m[2])
		}
		rest, more = rest[len(m[0]):], m[3] != ""
	}
	return tier
}

func tierOf(urgency string) stint.Priority {
	number, _, _ := strings.Cut(urgency, ";") // parameters follow
	u, err := strconv.ParseUint(strings.TrimRight(number, " \t"), 10, 64)
	if err != nil || u > 7 {
		return stint.Normal
	}
	return max(stint.Normal+3-stint.Priority(u), stint.Lowest)
}
