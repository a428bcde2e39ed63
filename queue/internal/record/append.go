package record

import (
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
)

// Append appends the encoding of the row to b; [Decode] reads it. It neither changes nor
// keeps the row. Equal rows have equal encodings.
func Append(b []byte, r *Row) []byte {
	w := writer{b: append(b, version)}
	w.header(r)
	w.body(r)
	return append(w.b, end)
}

func (w *writer) header(r *Row) {
	w.id(fieldID, r.ID)
	w.text(fieldQueue, r.Queue)
	w.text(fieldKind, r.Kind)
	w.text(fieldKey, r.Key)
	w.text(fieldGroup, r.Group)
	w.text(fieldUnique, r.Unique)
	w.number(fieldSeq, r.Seq)
	w.number(fieldState, uint64(r.State))
	w.signed(fieldTier, int64(r.Tier))
	w.number(fieldOrder, uint64(r.Order))
	w.signed(fieldFailures, int64(r.Failures))
	w.signed(fieldCrashes, int64(r.Crashes))
	w.time(fieldRunAt, r.RunAt)
	w.time(fieldDeadline, r.Deadline)
	w.time(fieldSubmitted, r.Submitted)
	w.id(fieldBatch, r.Batch)
	w.id(fieldAfterBatch, r.AfterBatch)
	w.ids(fieldAfter, r.After)
	w.ids(fieldAfterAny, r.AfterAny)
}

func (w *writer) body(r *Row) {
	w.bytes(fieldPayload, r.Payload)
	w.time(fieldChanged, r.Changed)
	for i := range r.Steps {
		w.step(&r.Steps[i])
	}
	w.text(fieldWorker, r.Lease.Worker)
	w.number(fieldToken, uint64(r.Lease.Token))
	w.signed(fieldMaxAttempts, int64(r.MaxAttempts))
	w.signed(fieldTimeout, int64(r.Timeout))
	w.text(fieldTrace, r.Trace)
	w.labels(r.Labels)
	w.signed(fieldMaxCrashes, int64(r.MaxCrashes))
	w.signed(fieldDone, r.Progress.Done)
	w.signed(fieldTotal, r.Progress.Total)
	w.text(fieldNote, r.Progress.Note)
	w.bytes(fieldCheckpoint, r.Checkpoint)
	w.bytes(fieldResult, r.Result)
	w.text(fieldError, r.Error)
	w.text(fieldOrderBy, r.OrderBy)
	w.text(fieldOrderReason, r.OrderReason)
	w.signed(fieldRemote, int64(r.Remote))
	w.signed(fieldUniqueFor, int64(r.UniqueFor))
	w.time(fieldRunAtEdited, r.RunAtEdited)
	w.time(fieldDeadlineEdited, r.DeadlineEdited)
}

func (w *writer) step(s *queue.Step) {
	from := w.open(fieldSteps)
	w.time(stepAt, s.At)
	w.number(stepOn, uint64(s.On))
	w.number(stepTo, uint64(s.To))
	w.text(stepBy, s.By)
	w.number(stepToken, uint64(s.Token))
	w.text(stepDetail, s.Detail)
	w.close(from)
}

// labels writes the labels in the order of their keys, because the iteration order of a
// map varies and equal rows must have equal encodings.
func (w *writer) labels(labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		from := w.open(fieldLabels)
		w.text(labelKey, key)
		w.text(labelValue, labels[key])
		w.close(from)
	}
}
