package cluster

import "sync"

// Listen is as [queue.Store] says. A change of the leader is a signal, because those on the
// way are lost.
func (n *Node) Listen(queue string) (<-chan struct{}, func()) {
	ready, ended := make(chan struct{}, 1), make(chan struct{})
	signal := func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	}
	var stopped sync.WaitGroup
	stopped.Go(func() {
		for n.current.life.Err() == nil {
			v := n.current.view()
			from, stop := v.store.Listen(queue)
			signal()
			for v.life.Err() == nil {
				select {
				case <-from:
					signal()
				case <-v.life.Done():
				case <-ended:
					stop()
					return
				}
			}
			stop()
		}
	})
	return ready, sync.OnceFunc(func() {
		close(ended)
		stopped.Wait()
	})
}
