package record

import "fmt"

// The bytes around the fields of a row.
const (
	version byte = 1
	end     byte = 0
)

// A tag is the number of a field, shifted, with the wire type in the low bits.
const (
	wireBits = 2
	wireMask = 1<<wireBits - 1

	wireNumber = 0
	wireBytes  = 1
)

// field is the number of a field. It has 64 bits, so that no number in a row is truncated
// to another one.
type field uint64

// The fields of a row. The package comment describes them, and how to add one.
const (
	fieldID         field = 1
	fieldQueue      field = 2
	fieldKind       field = 3
	fieldKey        field = 4
	fieldGroup      field = 5
	fieldUnique     field = 6
	fieldSeq        field = 7
	fieldState      field = 8
	fieldTier       field = 9
	fieldOrder      field = 10
	fieldFailures   field = 11
	fieldCrashes    field = 12
	fieldRunAt      field = 13
	fieldDeadline   field = 14
	fieldSubmitted  field = 15
	fieldBatch      field = 16
	fieldAfterBatch field = 17
	fieldAfter      field = 18
	fieldAfterAny   field = 19

	// firstOfBody is the first number after those of the header.
	firstOfBody field = 24

	fieldPayload     field = 24
	fieldChanged     field = 25
	fieldSteps       field = 26
	fieldWorker      field = 27
	fieldToken       field = 28
	fieldMaxAttempts field = 29
	fieldTimeout     field = 30
	fieldTrace       field = 31
	fieldLabels      field = 32
	fieldMaxCrashes  field = 33
	fieldDone        field = 34
	fieldTotal       field = 35
	fieldNote        field = 36
	fieldCheckpoint  field = 37
	fieldResult      field = 38
	fieldError       field = 39
	fieldOrderBy     field = 40
	fieldOrderReason field = 41
	fieldRemote      field = 42
	fieldUniqueFor   field = 46

	fieldRunAtEdited    field = 47
	fieldDeadlineEdited field = 48
)

// The fields of a step.
const (
	stepAt     field = 1
	stepOn     field = 2
	stepTo     field = 3
	stepBy     field = 4
	stepToken  field = 5
	stepDetail field = 6
)

// The fields of a label.
const (
	labelKey   field = 1
	labelValue field = 2
)

// The names of the fields in errors.
var (
	fieldNames = [...]string{
		fieldID: "id", fieldQueue: "queue", fieldKind: "kind", fieldKey: "key", fieldGroup: "group",
		fieldUnique: "unique", fieldSeq: "seq", fieldState: "state", fieldTier: "tier", fieldOrder: "order",
		fieldFailures: "failures", fieldCrashes: "crashes", fieldRunAt: "run_at", fieldDeadline: "deadline",
		fieldSubmitted: "submitted", fieldBatch: "batch", fieldAfterBatch: "after_batch", fieldAfter: "after",
		fieldAfterAny: "after_any",

		fieldPayload: "payload", fieldChanged: "changed", fieldSteps: "steps", fieldWorker: "worker",
		fieldToken: "token", fieldMaxAttempts: "max_attempts", fieldTimeout: "timeout", fieldTrace: "trace",
		fieldLabels: "labels", fieldMaxCrashes: "max_crashes", fieldDone: "done", fieldTotal: "total",
		fieldNote: "note", fieldCheckpoint: "checkpoint", fieldResult: "result", fieldError: "error",
		fieldOrderBy: "order_by", fieldOrderReason: "order_reason", fieldRemote: "remote",
		fieldUniqueFor: "unique_for", fieldRunAtEdited: "run_at_edited", fieldDeadlineEdited: "deadline_edited",
	}
	stepNames = [...]string{
		stepAt: "step.at", stepOn: "step.on", stepTo: "step.to", stepBy: "step.by", stepToken: "step.token",
		stepDetail: "step.detail",
	}
	labelNames = [...]string{labelKey: "label.key", labelValue: "label.value"}
)

// nameIn returns the field's name in one of these tables. The name of an unknown field is
// its number, which is 0 if it could not be read.
func (f field) nameIn(names []string) string {
	if f < field(len(names)) && names[f] != "" {
		return names[f]
	}
	return fmt.Sprintf("number %d", uint64(f))
}
