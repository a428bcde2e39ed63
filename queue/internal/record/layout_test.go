package record_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"testing"

	"github.com/stintgo/stint/queue/internal/record"
)

// layoutRow matches a line of the tables in the package comment: the number of a field,
// and its name.
var layoutRow = regexp.MustCompile(`(?m)^\s+(\d+)  ([a-z._]+)\s+(ID|IDs|bytes|number|signed|time|repeated)\b`)

// The tables in the package comment have exactly the fields of the code.
func TestLayoutIsAsDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	for _, match := range layoutRow.FindAllStringSubmatch(file.Doc.Text(), -1) {
		documented = append(documented, match[1]+" "+match[2])
	}
	for _, names := range record.Fields() {
		for number, name := range names {
			if name != "" {
				known = append(known, fmt.Sprint(number, " ", name))
			}
		}
	}
	if !slices.Equal(documented, known) {
		t.Errorf("documented at the package are the fields\n%q, and there are\n%q", documented, known)
	}
}
