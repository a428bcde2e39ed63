// Package record is how a task is written down: as one row of bytes, which
// stores keep in files. It is a format of its own because the standard library
// has none that is compact, can be read in part, and still reads rows of other
// versions of the program.
//
// A row is the byte 1, which is the version of the format, then fields, then
// the byte 0. A field is a tag and a value. The tag is a varint: the field's
// number, shifted left by two bits, and how the value is written:
//
//	0  number: a varint of 64 bits
//	1  bytes: a varint that counts them, and the bytes
//
// Varints are those of [encoding/binary]: seven bits to a byte, the lowest
// first. Numbers with a sign are folded into ones without (0, -1, 1, -2 are 0,
// 1, 2, 3). A time is nanoseconds since 1970, with a sign; so it lies between
// 1677-09-21 and 2262-04-11, and any other is written as the nearer end of that.
// An ID is its 16 bytes.
//
// Fields come in the order of their numbers, and only those that are not the
// zero value. A map and a list of structures are fields that are repeated, with
// the fields of one element as their bytes. No tag is 0, so a row that was cut
// short is always seen: its last byte is not the 0 after a whole field.
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
//	28  token         number  of the lease: the last one, when that is over
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
//	40  order_by      bytes   who gave the order
//	41  order_reason  bytes   and why
//	42  remote        signed  nanoseconds: the lease outlives its store by so much
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
// Fields below 24, and 25, are what [Peek] reads; the numbers that are free there
// are kept for more of those. Frequent fields are below 32: their tag is one byte.
//
// How to change it. A new field gets a number that was never used. Programs
// that do not know it skip it, and it is lost when they write the row again; so
// it must be one that can be lost. A field never changes its number, its
// meaning or how it is written, and the number of one that is gone stays
// reserved here. Any other change is a new version: [Decode] goes on reading
// the old ones, and programs that do not know the new one refuse it.
package record
