package reference

import "slices"

// listeners is the channels of listeners, by queue.
type listeners map[string][]chan struct{}

func (ls listeners) add(name string) chan struct{} {
	ready := make(chan struct{}, 1)
	ls[name] = append(ls[name], ready)
	return ready
}

func (ls listeners) remove(name string, ready chan struct{}) {
	ls[name] = slices.DeleteFunc(ls[name], func(c chan struct{}) bool { return c == ready })
	if len(ls[name]) == 0 {
		delete(ls, name)
	}
}

// signal signals all listeners that there may be tasks, whatever their queue.
func (ls listeners) signal() {
	for _, all := range ls {
		for _, ready := range all {
			signal(ready)
		}
	}
}
