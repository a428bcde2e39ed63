package durable

import "encoding/binary"

// newPayload is a payload of bytes that begins with a stamp.
func newPayload(stamp int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, payloadSize), uint64(stamp))[:payloadSize]
}

func stampOf(payload []byte) int64 { return int64(binary.BigEndian.Uint64(payload)) }
