package stint

// page is a part of a batch of posted jobs, just below 8 KiB. A long batch is
// many pages, so that it never has to be moved to grow.
type page struct {
	jobs [203]posting
	next *page
	n    int // jobs in the page
}

// batch is a queue of posted jobs.
type batch struct {
	first, last *page
	read        int // jobs of the first page that are gone
	n           int
}

func (b *batch) append(p *page) {
	if b.last == nil {
		b.first = p
	} else {
		b.last.next = p
	}
	b.last = p
}

// pop takes the first job, of which there must be one. A page that is done
// goes to the unused ones.
func (b *batch) pop(unused *pages) posting {
	p := b.first
	job := p.jobs[b.read]
	p.jobs[b.read] = posting{}
	b.read++
	b.n--
	if b.read == p.n {
		b.first, b.read = p.next, 0
		if b.first == nil {
			b.last = nil
		}
		unused.push(p)
	}
	return job
}

// pages is a stack of unused pages.
type pages struct {
	first *page
	n     int
}

// maxPages is how many unused pages are kept.
const maxPages = 64

func (s *pages) pop() *page {
	p := s.first
	if p == nil {
		return new(page)
	}
	s.first, p.next = p.next, nil
	s.n--
	return p
}

func (s *pages) push(p *page) {
	if s.n == maxPages {
		return
	}
	p.n, p.next = 0, s.first
	s.first = p
	s.n++
}
