// Package transfer uploads files as durable tasks of a [queue.Queue], by the protocol tus 1.0
// (https://tus.io/protocols/resumable-upload).
package transfer
