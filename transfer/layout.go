package transfer

import "fmt"

// The bounds of a layout.
const (
	// DefaultChunkSize is the size of a chunk, in bytes, of an upload whose ChunkSize is 0:
	// 16 MiB. [Input], of which a chunk is in memory, has chunks of half that size.
	DefaultChunkSize = 16 << 20
	// MaxChunks is the largest number of chunks of a file. The chunks of a file that would
	// have more are larger than its ChunkSize, by a whole factor.
	MaxChunks = 10_000
	// MaxChunkSize is the largest [Upload.ChunkSize]: 5 GiB, the largest part of S3. Chunks of
	// files of more than MaxChunks times as much are larger.
	MaxChunkSize = 5 << 30
	// MaxLanes is the largest number of lanes of an upload.
	MaxLanes = 16
)

// layout is how a file is divided: into chunks of the same size, the last one shorter, and
// into lanes, each a range of chunks. It follows from three numbers, so that a checkpoint
// does not have to list the ranges.
type layout struct {
	size  int64 // of the file, in bytes
	chunk int64 // of a chunk, in bytes
	lanes int
}

// newLayout divides a file of a size. There are no more lanes than chunks, and one at least.
func newLayout(size, chunk int64, lanes int) layout {
	if chunk <= 0 {
		chunk = DefaultChunkSize
	}
	most := chunk * MaxChunks
	chunk *= max(1, (size+most-1)/most)
	l := layout{size: size, chunk: chunk, lanes: 1}
	l.lanes = min(max(lanes, 1), MaxLanes, max(l.chunks(), 1))
	return l
}

// chunks returns the number of chunks: 0 for an empty file.
func (l layout) chunks() int { return int((l.size + l.chunk - 1) / l.chunk) }

// lane returns the first chunk of a lane, and the one after its last.
func (l layout) lane(i int) (first, last int) {
	n := l.chunks()
	return i * n / l.lanes, (i + 1) * n / l.lanes
}

// offset returns where a chunk begins in the file, in bytes.
func (l layout) offset(chunk int) int64 { return min(int64(chunk)*l.chunk, l.size) }

// String describes the layout for messages.
func (l layout) String() string {
	return fmt.Sprintf("%d bytes in chunks of %d bytes, %d lanes", l.size, l.chunk, l.lanes)
}
