// Package simulation runs package queue, as it is, in a world that one seed
// decides: workers, submitters and operators on one store, all of it in virtual
// time. Processes have one call of Run or two, of one queue or several, on slots that
// they share with the rest of their program. They stall, crash, stop in both stages,
// halt and have clocks that jump; calls are slow, fail, or lose their answers; the store
// crashes and is opened again on what its disk has; limits and schedules change while
// tasks run.
//
// # How a seed decides
//
// Goroutines run in a bubble of testing/synctest, where nothing but they decides
// when time passes. Each call of the store, and each return of a handler, stops at
// a gate. When all goroutines wait, the world picks one of those at the gate by
// the seed, lets it through, and waits until all is quiet again. So there is one
// step at a time, and each order of steps that the world can have belongs to some
// seed. It is Lamport's view of a distributed system (1978) with the network, the
// disks and the clocks in one hand; FoundationDB is tested so.
//
// That makes the same history of the same seed as long as what happens between two
// quiet moments does not depend on the order in which goroutines run. The package
// tests it, and that is a test of package queue: its loops must not race.
//
// # What is checked
//
// A judge sees every call in order, with its answer and the events that it brought.
// It keeps its own account of every task and compares: states and their path,
// leases and tokens, limits and rates, order, dependencies, counts, the ticks of
// schedules, slots, what hooks are told, what is stored and found again after a
// crash. What handlers returned must be what the store is told, and in the end,
// when the faults stop, everything that was accepted has to be finished.
//
// There is nothing to import here: the package is its tests.
package simulation
