package simulation_test

import (
	"time"
)

// worker draws a node that works, nil if there is none.
func (sc *scenario) worker() *node {
	var all []*node
	for _, n := range sc.w.nodes {
		if n.works() {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(sc.rng, all...)
}

// startHost starts a process with one call of Run, or two that share its slots.
func (sc *scenario) startHost() {
	const most = 5
	works := 0
	for _, n := range sc.w.nodes {
		if n.works() {
			works++
		}
	}
	if works >= most {
		return
	}
	kinds := kindNames
	if sc.w.chance(3) {
		kinds = kindNames[:2]
	}
	first, other := queueNames[:1], queueNames[1:]
	lists := pick(sc.rng, [][]string{first}, [][]string{other}, [][]string{queueNames}, [][]string{first, other},
		[][]string{other, other}, [][]string{queueNames, first})
	sc.w.startHost(kinds, 1+sc.rng.IntN(3), lists...)
}

func (sc *scenario) stopWorker() {
	if n := sc.worker(); n != nil {
		n.stop()
	}
}

// halt halts a node that works or is about to stop.
func (sc *scenario) halt() {
	var all []*node
	for _, n := range sc.w.nodes {
		if n.worker() && n.goesOn() && !n.ended {
			all = append(all, n)
		}
	}
	if len(all) > 0 {
		pick(sc.rng, all...).halt()
	}
}

func (sc *scenario) killHost() {
	if n := sc.worker(); n != nil {
		n.kill()
	}
}

// occupy makes the program around a worker use one of its slots.
func (sc *scenario) occupy() {
	if n := sc.worker(); n != nil {
		sc.w.log("something else has a slot of %s", n.host.name)
		n.occupy(upTo(sc.rng, sc.w.lease))
	}
}

// pauseSlots pauses the slots of a process, or resumes them.
func (sc *scenario) pauseSlots() {
	if n := sc.worker(); n != nil {
		n.pause(!n.paused)
	}
}

// startHosts starts workers for all queues and kinds: one process, or one for each queue.
func (sc *scenario) startHosts() {
	if sc.w.chance(2) {
		sc.w.startHost(kindNames, 1+sc.rng.IntN(3), queueNames)
		return
	}
	for _, name := range queueNames {
		sc.w.startHost(kindNames, 1+sc.rng.IntN(3), []string{name})
	}
}

// stall stalls a process, as when a virtual machine is moved.
func (sc *scenario) stall() {
	h := pick(sc.rng, sc.w.hosts...)
	h.stalled = sc.w.now().Add(upTo(sc.rng, 2*sc.w.lease))
	sc.w.log("%s stalls until %s", h.name, h.stalled.Sub(sc.w.begun))
}

// jump sets the clock of a process.
func (sc *scenario) jump() {
	h := pick(sc.rng, sc.w.hosts...)
	h.skew.Store(int64(upTo(sc.rng, time.Minute) - 30*time.Second))
	sc.maxSkew = max(sc.maxSkew, h.skewed())
	sc.w.log("the clock of %s is set %s from the right time", h.name, h.skewed())
}
