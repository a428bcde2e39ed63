// Package transfer uploads files as durable tasks of a [queue.Queue]. An upload that is
// interrupted, also by the end of its process, continues where it was.
//
//	q := queue.New(store, queue.Config{})
//	transfer.Handle(q, transfer.Config{})
//	go q.Run(ctx, stint.New(3, stint.Config{})) // three files at once
//	receipts, err := transfer.Add(ctx, q, queue.Options{},
//		transfer.Upload{Path: "film.mkv", To: "https://example.com/files/"})
//
// An upload has the states, attempts, priority, key, limits, reasons and history of its task.
// [queue.Queue.Pause], Resume, Cancel and Retry command one upload, and [queue.Queue.Command]
// with the Kind [Kind] all of them. [Find] and [Count] add what only uploads have: the states
// of chunks, the rate, and the time that is left. The scheduler of [queue.Queue.Run] decides
// how many uploads run at once, and [Config.Rate] how many bytes per second they send
// together.
//
// # Protocol
//
// Servers speak tus 1.0.0 (https://tus.io/protocols/resumable-upload) with the extension
// creation. The extensions checksum, concatenation, termination and creation-defer-length are
// used if the server announces them: for checksums of chunks, for lanes, to delete the upload
// of a cancelled task, and for [Input].
//
// A file is sent in chunks, each in one request, and each with its CRC32C (RFC 3720, section
// 12.1) if the server takes the algorithm crc32c, else with its SHA-256. A request that fails
// is repeated from the offset that the server says. With several lanes, as many ranges
// of the file are sent at once as partial uploads, which the server concatenates. The
// metadata key part-of of a partial upload is "<group> <offset> <total>": a name that the
// parts of a file share, where the part begins, and the size of the file. A server that knows
// the key can write the parts into one file, so that it copies nothing.
//
// Uploads to s3://BUCKET/PREFIX are multipart uploads of S3, with the same chunks, lanes, rates
// and checkpoints: set [Config.S3], see package transfer/s3.
//
// # Resuming
//
// The checkpoint of the task has the state and the CRC32C of each chunk, and the URLs of the
// uploads at the server. They are written before the second chunk of a lane is sent, so the
// end of a process costs at most one chunk of each lane. The next attempt asks the server what
// it has, and sends the rest. If the file was written to meanwhile, the chunks that the server
// has are compared with the file first. docs/upload.md has the states of chunks, and says what
// is sent again in which case.
//
// Uploads are sent at least once: if the answer to the last request is lost, and the server
// does not know the upload any more, the file is sent again. So is a file of one chunk whose
// process was killed before its URL was written, unless the server recognizes the upload by the
// metadata key stint-upload of its creation, as package transfer/receiver does. The value is a
// token: a hash of the ID of the task, and of the size and modification time of the file.
package transfer

// The files:
//
//   - upload.go: Upload, Add
//   - files.go: Files, which expands patterns and directories
//   - config.go: Config and its defaults
//   - attempt.go: Handle, and one attempt of an upload
//   - lane.go: a range of the file, and the upload that it is sent to
//   - sender.go: sends a lane chunk by chunk
//   - backoff.go: which requests are repeated, and when
//   - stream.go: uploads of the input
//   - terminate.go: deletes unfinished uploads at the server
//   - tus.go: the requests of tus; internal/protocol is the seam to other protocols
//   - body.go: the body of a request, with limiter and watchdog
//   - source.go: the file, its fingerprint and its checksums
//   - layout.go: how a file is divided into chunks and lanes
//   - chunk.go: the states of chunks, and the table of transitions
//   - plan.go: what the next attempt must know, and its form as a checkpoint
//   - report.go: progress and rate
//   - find.go: Transfer, Find, Count
