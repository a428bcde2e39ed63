// Package record encodes a task as one row of bytes, which stores keep in files. It
// defines a format of its own because the standard library has none that is compact, can
// be read in part, and reads rows of other versions of the program.
//
// A row is the byte 1, which is the version of the format, then fields, then
// the byte 0. A field is a tag and a value. The tag is a varint: the field's
// number, shifted left by two bits, plus the wire type of the value:
//
//	0  number: a varint of 64 bits
//	1  bytes: a varint with their count, and the bytes
//
// Varints are those of [encoding/binary]: seven bits to a byte, the lowest first. Signed
// numbers are zigzag-encoded (0, -1, 1, -2 are written as 0, 1, 2, 3). A time is the
// signed number of nanoseconds since 1970. It can represent 1677-09-21 to 2262-04-11; any
// other time is written as the nearer end of that range. An ID is its 16 bytes.
//
// Fields are in the order of their numbers; fields with the zero value are omitted. A map
// or a list of structures is a repeated field, whose bytes are the fields of one element.
// No tag is 0, so truncation is always detected: a truncated row does not end with a 0
// after a whole field.
//
//	 1  id            ID      that of the task
//	 2  queue         bytes
//	 3  kind          bytes
//	 4  key           bytes
//	 5  group         bytes
//	 6  unique        bytes
//	 7  seq           number
//	 8  state         number
//	 9  tier          signed
//	10  order         number
//	11  failures      signed
//	12  crashes       signed
//	13  run_at        time
//	14  deadline      time
//	15  submitted     time
//	16  batch         ID
//	17  after_batch   ID
//	18  after         IDs     one after the other
//	19  after_any     IDs     one after the other
//	24  payload       bytes
//	25  changed       time
//	26  steps         repeated
//	27  worker        bytes   of the lease
//	28  token         number  of the lease: of the last one if the task has none
//	29  max_attempts  signed
//	30  timeout       signed  nanoseconds
//	31  trace         bytes
//	32  labels        repeated, in the order of their keys
//	33  max_crashes   signed
//	34  done          signed  of the progress
//	35  total         signed  of the progress
//	36  note          bytes   of the progress
//	37  checkpoint    bytes
//	38  result        bytes
//	39  error         bytes
//	40  order_by      bytes   the author of the order
//	41  order_reason  bytes   the reason for the order
//	42  remote        signed  nanoseconds: the length of a lease that outlives its store
//	46  unique_for    signed  nanoseconds
//	47  run_at_edited    time  of the last command that edited run_at
//	48  deadline_edited  time  of the last command that edited deadline
//
// A step:
//
//	1  step.at       time
//	2  step.on       number
//	3  step.to       number
//	4  step.by       bytes
//	5  step.token    number
//	6  step.detail   bytes
//
// A label:
//
//	1  label.key     bytes
//	2  label.value   bytes
//
// [Peek] reads the fields below 24, and 25; the free numbers below 24 are reserved for
// more fields of the header. Frequent fields are below 32, where the tag is one byte.
//
// # Changing the format
//
// A new field gets a number that was never used. Older programs skip it and lose it when
// they write the row again, so only a field that may be lost can be added this way. A
// field never changes its number, meaning or encoding, and the number of a removed field
// stays reserved here. Any other change is a new version: [Decode] must continue to read
// the old versions, and older programs reject the new one.
package record
