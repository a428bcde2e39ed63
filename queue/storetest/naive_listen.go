package storetest

import "slices"

func (n *naive) Listen(name string) (<-chan struct{}, func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name = orDefault(name)
	ready := make(chan struct{}, 1)
	n.listeners[name] = append(n.listeners[name], ready)
	return ready, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.listeners[name] = slices.DeleteFunc(n.listeners[name], func(c chan struct{}) bool { return c == ready })
		if len(n.listeners[name]) == 0 {
			delete(n.listeners, name)
		}
	}
}

// signal tells all who listen that there may be tasks, of whatever queue.
func (n *naive) signal() {
	for _, listeners := range n.listeners {
		for _, ready := range listeners {
			select {
			case ready <- struct{}{}:
			default:
			}
		}
	}
}
