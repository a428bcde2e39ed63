package simulation_test

import (
	"time"
)

// worker draws one that works, nil if none does.
func (p *plots) worker() *node {
	var all []*node
	for _, n := range p.w.nodes {
		if n.works() {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(p.rng, all...)
}

// startHost starts a process with one call of Run, or two that share its slots.
func (p *plots) startHost() {
	const most = 5
	works := 0
	for _, n := range p.w.nodes {
		if n.works() {
			works++
		}
	}
	if works >= most {
		return
	}
	kinds := kindNames
	if p.w.chance(3) {
		kinds = kindNames[:2]
	}
	first, other := queueNames[:1], queueNames[1:]
	lists := pick(p.rng, [][]string{first}, [][]string{other}, [][]string{queueNames}, [][]string{first, other},
		[][]string{other, other}, [][]string{queueNames, first})
	p.w.startHost(kinds, 1+p.rng.IntN(3), lists...)
}

func (p *plots) stopWorker() {
	if n := p.worker(); n != nil {
		n.stop()
	}
}

// halt has one return at once that works, or is about to stop.
func (p *plots) halt() {
	var all []*node
	for _, n := range p.w.nodes {
		if n.worker() && n.goesOn() && !n.ended {
			all = append(all, n)
		}
	}
	if len(all) > 0 {
		pick(p.rng, all...).halt()
	}
}

func (p *plots) killHost() {
	if n := p.worker(); n != nil {
		n.kill()
	}
}

// occupy has the program around a worker use one of its slots.
func (p *plots) occupy() {
	if n := p.worker(); n != nil {
		p.w.log("something else has a slot of %s", n.host.name)
		n.occupy(upTo(p.rng, p.w.lease))
	}
}

// pauseSlots pauses the slots of a process, or ends that.
func (p *plots) pauseSlots() {
	if n := p.worker(); n != nil {
		n.pause(!n.paused)
	}
}

// startHosts starts who can work on everything: one process with all queues, or
// one for each.
func (p *plots) startHosts() {
	if p.w.chance(2) {
		p.w.startHost(kindNames, 1+p.rng.IntN(3), queueNames)
		return
	}
	for _, name := range queueNames {
		p.w.startHost(kindNames, 1+p.rng.IntN(3), []string{name})
	}
}

// stall has a process stand still, as in a virtual machine that is moved.
func (p *plots) stall() {
	h := pick(p.rng, p.w.hosts...)
	h.stalled = p.w.now().Add(upTo(p.rng, 2*p.w.lease))
	p.w.log("%s stalls until %s", h.name, h.stalled.Sub(p.w.begun))
}

// jump sets the clock of a process.
func (p *plots) jump() {
	h := pick(p.rng, p.w.hosts...)
	h.skew.Store(int64(upTo(p.rng, time.Minute) - 30*time.Second))
	p.maxSkew = max(p.maxSkew, h.skewed())
	p.w.log("the clock of %s is set %s from the right time", h.name, h.skewed())
}
