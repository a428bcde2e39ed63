package server_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// A server whose process runs tasks returns and changes how many run at once; otherwise
// the call is not found.
func TestB5_JobsOfTheProcess(t *testing.T) {
	most := 2
	jobs := func(to string) (int, int, []string, error) {
		if to != "" {
			if _, err := fmt.Sscan(to, &most); err != nil {
				return 0, 0, nil, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
			}
		}
		if most > 100 {
			return 100, 1, []string{"100 is the most"}, nil
		}
		return most, 1, nil, nil
	}
	for _, test := range []struct {
		jobs         func(string) (int, int, []string, error)
		body, answer string
		status       int
	}{
		{jobs, `{}`, `{"most":2,"running":1}`, 200},
		{jobs, `{"to":"8"}`, `{"most":8,"running":1}`, 200},
		{jobs, `{"to":"101"}`, `{"most":100,"running":1,"notes":["100 is the most"]}`, 200},
		{jobs, `{"to":"x"}`, `"code":"invalid"`, 400},
		{jobs, `{"too":"8"}`, `"code":"invalid"`, 400},
		{jobs, ``, `"code":"invalid"`, 400},
		{nil, `{}`, `runs no tasks`, 404},
	} {
		s := server.New(memstore.New(memstore.Config{}), server.Config{Jobs: test.jobs})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, request("POST", wire.Jobs, test.body))
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.answer) {
			t.Errorf("%q is answered %d %s, want %d %s", test.body, w.Code, w.Body, test.status, test.answer)
		}
		s.Close()
	}
}
