// Package receiver receives resumable uploads into a directory. It is an [http.Handler]
// for any server:
//
//	r, err := receiver.Open("uploads", receiver.Config{MaxSize: 100 << 30})
//	...
//	mux.Handle("/files/", r)
//	defer r.Close()
//
// It speaks three protocols at the same path: tus 1.0.0
// (https://tus.io/protocols/resumable-upload) with the extensions creation,
// creation-with-upload, creation-defer-length, termination, checksum, checksum-trailer,
// expiration and concatenation; the IETF draft "Resumable Uploads for HTTP"
// (draft-ietf-httpbis-resumable-upload, interop versions 8 and 6); and a plain one for
// programs without a library, which sends chunks by PUT and merges them by one call. GET of
// an upload's path reads the finished file, with ranges, until the file is moved or changed.
// docs/receiver.md has the calls, with the test that shows each.
//
// # Files
//
// A finished file is in the directory under the name that the client gave, or a name
// like it if that is taken. The directory .uploads in it has, for each unfinished upload,
// the data and a journal. The data file is reserved at its full size when the upload
// begins, so that a full disk is found then, and all bytes are written to their final
// place. Finishing is a sync and a rename, however large the file is. Do not serve the
// directory's hidden names.
//
// # Crashes
//
// The journal says how far each upload has come. It is written after the data, without a
// sync: a process that is killed loses at most 1 MiB of each upload, or all of a body that has
// a checksum, and no byte that an answer has confirmed. After a restart of the machine, Open
// compares the data with the CRC32C of each chunk in the journal, and an upload continues at
// its first chunk that the disk does not have. An upload that began shortly before a loss of power may be
// unknown afterwards. A finished file is durable before its client gets the answer.
// Leftovers that no journal names are removed at Open. An upload whose journal cannot be read
// is logged, and kept under other names.
//
// # Two requests for one upload
//
// A request for an upload that another request writes takes it over: the connection of
// the former is usually dead, and the server cannot know. The former request ends first,
// with an answer 409 if its client still reads, and what it received is kept. So no upload
// is ever locked. HEAD takes over too, so its answer is valid until the next PATCH.
//
// # Tokens
//
// A client that may lose the answer to a creation of tus, or may be killed before it has
// stored it, chooses a token for the file, 16 to 64 random letters, digits, - and _, and sends
// it as the metadata "stint-upload". A second creation with the same token and [Config.Key]
// makes no upload: its answer is the earlier upload, unfinished or finished, as long as the
// receiver knows that upload, also after a restart.
//
// # Parts
//
// A client can send parts of a file at once, by partial uploads of tus. If it says where
// each belongs, by the metadata "part-of", all are written to their places in one file and
// the concatenation copies nothing. The value is the name of a group, the offset of the
// part and the size of the whole file in bytes, separated by spaces. The client chooses the
// name, 16 to 64 random letters, digits, - and _. Partial uploads without it are files of
// their own: the concatenation appends them to the first by copy_file_range, which shares
// the blocks on file systems that can (XFS, Btrfs), and copies them elsewhere; each is
// removed when it is durable in the whole, so that the disk needs room for one more part.
//
// # Limits
//
// [Config.Slots] and [Config.Rate] take the tier and the key of each request. A request
// takes 256 KiB of memory while it receives. All IDs are 128 random bits; a client that knows
// an ID has access to the upload. The paths of the plain protocol are names, so mount
// the receiver behind an access check if those matter.
package receiver

// The files:
//
//   - receiver.go: Receiver, Open, Close, the choice of the protocol
//   - store.go: the files of a directory and their uploads, the lock
//   - quota.go: the number and the bytes of unfinished uploads
//   - sweep.go: what expires
//   - requests.go: what the protocols share
//   - config.go: Config, and Upload, which the hook gets
//   - tus.go: tus 1.0.0
//   - concat.go: one file of many parts, concatenation
//   - draft.go: the IETF draft
//   - plain.go: the plain protocol
//   - download.go: GET of finished files
//   - cors.go: pages of other origins
//   - header.go: parsers of headers
//   - refusal.go: errors that clients get
//   - session.go: the request that writes an upload, and how the next one takes over
//   - receive.go: copies a body to its place
//   - file.go: a file with its lanes and its state
//   - upload.go: what an ID stands for: a lane, or the whole of a group
//   - lanes.go: the ranges of a file
//   - storage.go: the open data and journal of a file
//   - publish.go: verify, sync, rename
//   - announce.go: Finished, and the receipt
//   - journal.go: the format of journals
//   - load.go: what Open makes of journals
//   - names.go: IDs and file names
//   - disk.go: what a full disk makes fail
//   - disk_linux.go: reserving, copying, renaming and locking on Linux
//   - disk_other.go: the same on other systems
