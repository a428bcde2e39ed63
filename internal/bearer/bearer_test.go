package bearer_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/bearer"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	longest := strings.Repeat("x", bearer.MaxToken)
	for _, test := range []struct {
		text, token string
		mode        os.FileMode
		says        string // of the error
	}{
		{text: "eyJhbGciOiJIUzI1NiJ9.e30.Et9-_~+/=\n", token: "eyJhbGciOiJIUzI1NiJ9.e30.Et9-_~+/=", mode: 0o600},
		{text: longest + "\r\n", token: longest, mode: 0o600},
		{text: longest + "x", mode: 0o600, says: "does not hold a token"},
		{text: longest + strings.Repeat("\n", 100) + "x", mode: 0o600, says: "does not hold a token"},
		{text: "", mode: 0o600, says: "does not hold a token"},
		{text: "two words", mode: 0o600, says: "does not hold a token"},
		{text: "a\nHost: b", mode: 0o600, says: "does not hold a token"},
		{text: "token", mode: 0o644, says: "chmod 600"},
	} {
		_ = os.Remove(path)
		if err := errors.Join(os.WriteFile(path, []byte(test.text), 0o600), os.Chmod(path, test.mode)); err != nil {
			t.Fatal(err)
		}
		token, err := bearer.Read(path)
		if token != test.token || (err == nil) != (test.says == "") || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%.20q with mode %o: %.20q, %v", test.text, test.mode, token, err)
		}
	}
	if _, err := bearer.Read(filepath.Join(path, "none")); err == nil {
		t.Error("a missing file has a token")
	}
}
