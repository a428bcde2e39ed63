package stint_test

import (
	"slices"

	"github.com/stintgo/stint"
)

// compareWaiting checks what Waiting says against the model: what is queued, in the
// order of arrival, and then the blocked submitters, each with the reasons that
// follow from its own weight, key and tier.
func (p *play) compareWaiting(after string) {
	p.t.Helper()
	got, want := p.s.Waiting(), slices.Clone(p.m.waiting)
	if p.m.submitters != nil {
		for _, q := range p.m.submitters.waiting {
			want = append(want, q.brings)
		}
	}
	if len(got) != len(want) {
		p.t.Fatalf("after %s: %d wait, want %d\n%s", after, len(got), len(want), p)
	}
	for i, w := range got {
		q, codes := want[i], p.m.codes(want[i])
		if i >= len(p.m.waiting) {
			codes = append([]stint.Code{stint.CodeQueueFull}, codes...)
		}
		var is []stint.Code
		ahead := 0
		for _, r := range w.Reasons {
			if (r.Code == stint.CodeCap || r.Code == stint.CodeBehind) && r.Guard != p.m.guardIn(q.tier) {
				p.t.Fatalf("after %s: the guard comes to tier %d in %d turns, want %d\n%s",
					after, q.tier, r.Guard, p.m.guardIn(q.tier), p)
			}
			if r.Code == stint.CodeBehind {
				for _, n := range r.Ahead {
					ahead += n
				}
			} else {
				is = append(is, r.Code)
			}
		}
		if w.Priority != stint.Priority(q.tier)+stint.Lowest || w.Key != q.key || w.Weight != q.weight || w.Ahead != ahead ||
			w.Ahead < 0 || w.Ahead >= len(got) || !slices.Equal(is, codes) {
			p.t.Fatalf("after %s: place %d of %d: %+v, want %+v with %v\n%s", after, i, len(got), w, q, codes, p)
		}
	}
}

// guardIn is in how many turns the guard comes to a tier.
func (n *schedulerModel) guardIn(tier int) int { return (8*tier + 7 - n.turn + 56) % 56 }

// codes is why a piece waits, besides those that go first.
func (n *schedulerModel) codes(p *piece) (codes []stint.Code) {
	if n.paused {
		codes = append(codes, stint.CodePaused)
	}
	if n.full(p.key) {
		codes = append(codes, stint.CodeKey)
	}
	if n.running+p.weight > n.limit {
		codes = append(codes, stint.CodeMax)
	}
	if limit := n.capOf(p.tier); n.running >= limit && limit < n.limit {
		codes = append(codes, stint.CodeCap)
	}
	return codes
}
