// Package queue runs tasks that must not be lost: they are kept in a [Store]
// until they have succeeded, are tried again when they fail or when their worker
// dies, wait for each other, and can always say why they wait.
//
// docs/states.md draws the life of a task, and docs/guarantees.md says what is
// promised, what is not, and which test shows it.
package queue
