// Package simulation runs package queue in a world that is determined by one seed:
// workers, submitters and operators on one store, in virtual time. A process has one or
// two calls of Run, of one queue or several, on slots that they share with the rest of
// their program. Processes stall, crash, stop in both stages, halt, and have clocks that
// jump. Calls are slow, fail, or lose their answers. The store crashes and is opened
// again on what its disk has. Limits and schedules change while tasks run.
//
// # How a seed determines a history
//
// All goroutines run in a bubble of testing/synctest. Each call of the store, and each
// return of a handler, stops at a gate. When all goroutines wait, the world chooses one
// request at the gate by the seed, lets it pass, and waits until all goroutines wait
// again. So there is one step at a time, and every order of steps belongs to some seed.
// The network, the disks and the clocks are in one hand, as in Lamport's model of a
// distributed system ("Time, Clocks, and the Ordering of Events in a Distributed System",
// 1978); FoundationDB is tested in this way.
//
// A seed has the same history each time if nothing between two steps depends on the order
// in which goroutines run. The package tests that, which is also a test of package queue:
// its loops must not race.
//
// # What is checked
//
// The checker sees every call in order, with its answer and its events. It keeps its own
// record of every task, applies the rules of package reference to it, and compares:
// states and their order, leases and tokens, limits and rates, the order of starts,
// dependencies, counts, ticks of schedules, slots, calls of hooks, and what the store has
// after a crash. The outcomes that the store receives must be those that the handlers
// returned. When the faults stop, every accepted task must finish.
//
// # A failure
//
// A failed test prints the seed and the end of the history. STINT_SEED=N repeats that
// seed; go test -artifacts writes the whole history to a file.
//
// The package has only tests, and exports nothing:
//
//   - world_test.go: the world, its time, and the choice of the next step
//   - gate_test.go: the gate, at which goroutines wait for their step
//   - port_test.go: the calls of a Queue, which go through the gate to the store
//   - disk_test.go: the disk of the store, its flaws, and the lease log
//   - host_test.go, node_test.go: processes, and their calls of Run
//   - handler_test.go, hooks_test.go, signals_test.go: handlers, hooks, and listeners
//   - scenario_*.go: what happens to the world: faults, submits, commands, schedules
//   - checker_*.go: the record of all tasks, and its comparison with the store
//   - simulation_test.go, same_test.go: the tests
package simulation
