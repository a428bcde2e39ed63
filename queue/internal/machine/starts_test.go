package machine_test

import (
	"slices"
	"sync"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// starts are in a list, and can be made to fail.
type starts struct {
	mu     sync.Mutex
	noted  []machine.Start // by place, from 1
	owners []queue.Token   // 0: the place is free
	left   int             // places that can be had
	puts   int             // how many succeed before putErr
	putErr error
	onPut  func() // called once, before anything is noted; nil for nothing
}

func newStarts() *starts {
	return &starts{noted: make([]machine.Start, 1), owners: make([]queue.Token, 1), left: 1 << 30}
}

func (s *starts) Recall(fn func(slot int, s machine.Start)) error {
	s.owners = make([]queue.Token, len(s.noted))
	for slot, start := range s.noted {
		if start.Token != 0 {
			s.owners[slot] = start.Token
			fn(slot, start)
		}
	}
	return nil
}

func (s *starts) Reserve(token queue.Token) (slot int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return 0, errDisk
	}
	s.left--
	if slot = slices.Index(s.owners[1:], 0) + 1; slot == 0 {
		slot = len(s.owners)
		s.owners, s.noted = append(s.owners, 0), append(s.noted, machine.Start{})
	}
	s.owners[slot] = token
	return slot, nil
}

func (s *starts) Put(starts []machine.Noted) (n int, err error) {
	if do := s.onPut; do != nil {
		s.onPut = nil
		do()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, start := range starts {
		if s.putErr != nil {
			if s.puts == 0 {
				return i, s.putErr
			}
			s.puts--
		}
		if s.owners[start.Place] == start.Token {
			s.noted[start.Place] = start.Start
		}
	}
	return len(starts), nil
}

func (s *starts) Free(slot int, token queue.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[slot] == token {
		s.owners[slot] = 0
	}
}

// crash returns what another machine recalls.
func (s *starts) crash() *starts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &starts{noted: slices.Clone(s.noted), left: 1 << 30}
}

// reserved counts the places that are.
func (s *starts) reserved() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range s.owners {
		if token != 0 {
			n++
		}
	}
	return n
}
