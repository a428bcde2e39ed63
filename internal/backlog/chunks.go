package backlog

// chunks is a list that grows without being moved, so that its growth takes a
// bounded time.
type chunks[E any] struct {
	size int // of a chunk
	all  [][]E
	n    int
}

// reserve makes room for n more elements.
func (c *chunks[E]) reserve(n int) {
	for len(c.all)*c.size < c.n+n {
		c.all = append(c.all, make([]E, c.size))
	}
}

func (c *chunks[E]) at(i int) *E { return &c.all[i/c.size][i%c.size] }

func (c *chunks[E]) add(e E) {
	c.reserve(1)
	c.n++
	*c.at(c.n - 1) = e
}

// flat returns the elements as a slice.
func (c *chunks[E]) flat() []E {
	if c.n <= c.size && c.n > 0 {
		return c.all[0][:c.n]
	}
	all := make([]E, 0, c.n)
	for i := 0; len(all) < c.n; i++ {
		all = append(all, c.all[i][:min(c.size, c.n-len(all))]...)
	}
	return all
}
