package record

import (
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Decode reads a row that [Append] wrote, and skips unknown fields. The row shares no
// memory with b, and its size is linear in the length of b. Empty lists and maps come
// back as nil, times in UTC. Errors: [ErrCorrupt], [ErrVersion].
func Decode(b []byte) (row Row, err error) {
	var (
		h Header
		r reader
	)
	r.open(b)
	r.row(&row, &h)
	return row, r.err
}

// Share is [Decode] into a row whose Payload, Checkpoint and Result share the memory of
// b: the caller must change neither them nor b. Names that equal those of known share
// their memory, and known becomes the header of this row. Steps has capacity for two more,
// because most tasks have at most two steps to come.
func (row *Row) Share(b []byte, known *Header) error {
	r := reader{share: true}
	r.open(b)
	r.row(row, known)
	return r.err
}

// row reads a whole row. After an error *row is zero.
func (r *reader) row(row *Row, known *Header) {
	var h Header
	more := r.header(&h, known)
	*known = h
	*row = h.Row()
	for ; more; more = r.next() {
		r.body(row)
	}
	if r.err != nil {
		*row = Row{}
	}
}

// Peek is like [Decode], but reads only the [Header] of a row. It does not detect errors in
// the rest.
func Peek(b []byte) (h Header, err error) {
	err = h.Read(b)
	return h, err
}

// Read is Peek into a header that already has the content of another row. Names that did
// not change are not allocated again: consecutive rows usually have the same names.
func (h *Header) Read(b []byte) error {
	known := *h
	*h = Header{}
	var r reader
	r.open(b)
	for more := r.header(h, &known); more && r.field <= fieldChanged; more = r.next() {
		if r.field == fieldChanged { // it follows the payload
			h.Changed = r.time()
			break
		}
	}
	if r.err != nil {
		*h = Header{}
	}
	return r.err
}

// header reads the fields up to the first one of the body, and reports whether there is
// one. Names that equal those of known share their memory.
func (r *reader) header(h, known *Header) bool {
	for r.next() {
		if r.field >= firstOfBody {
			return true
		}
		r.headerField(h, known)
	}
	return false
}

func (r *reader) headerField(h, known *Header) {
	switch r.field {
	case fieldID:
		h.ID = r.id()
	case fieldQueue:
		h.Queue = r.name(known.Queue)
	case fieldKind:
		h.Kind = r.name(known.Kind)
	case fieldKey:
		h.Key = r.name(known.Key)
	case fieldGroup:
		h.Group = r.text()
	case fieldUnique:
		h.Unique = r.text()
	case fieldSeq:
		h.Seq = r.number()
	case fieldState:
		h.State = queue.State(r.small())
	case fieldTier:
		h.Tier = stint.Priority(r.tiny())
	case fieldOrder:
		h.Order = queue.Order(r.small())
	case fieldFailures:
		h.Failures = r.int()
	case fieldCrashes:
		h.Crashes = r.int()
	case fieldRunAt:
		h.RunAt = r.time()
	case fieldDeadline:
		h.Deadline = r.time()
	case fieldSubmitted:
		h.Submitted = r.time()
	case fieldBatch:
		h.Batch = r.id()
	case fieldAfterBatch:
		h.AfterBatch = r.id()
	case fieldAfter:
		h.After = r.ids()
	case fieldAfterAny:
		h.AfterAny = r.ids()
	default: // only a newer program knows it
	}
}

func (r *reader) body(row *Row) {
	switch r.field {
	case fieldPayload:
		row.Payload = r.bytes()
	case fieldChanged:
		row.Changed = r.time()
	case fieldSteps:
		if row.Steps == nil {
			row.Steps = make([]queue.Step, 0, r.run()+r.room())
		}
		row.Steps = append(row.Steps, r.step())
	case fieldWorker:
		row.Lease.Worker = r.text()
	case fieldToken:
		row.Lease.Token = queue.Token(r.number())
	case fieldMaxAttempts:
		row.MaxAttempts = r.int()
	case fieldTimeout:
		row.Timeout = time.Duration(r.signed())
	case fieldTrace:
		row.Trace = r.text()
	case fieldLabels:
		if row.Labels == nil {
			row.Labels = make(map[string]string, r.run())
		}
		key, value := r.label()
		row.Labels[key] = value
	case fieldMaxCrashes:
		row.MaxCrashes = r.int()
	case fieldDone:
		row.Progress.Done = r.signed()
	case fieldTotal:
		row.Progress.Total = r.signed()
	case fieldNote:
		row.Progress.Note = r.text()
	case fieldCheckpoint:
		row.Checkpoint = r.bytes()
	case fieldResult:
		row.Result = r.bytes()
	case fieldError:
		row.Error = r.text()
	case fieldOrderBy:
		row.OrderBy = r.text()
	case fieldOrderReason:
		row.OrderReason = r.text()
	case fieldRemote:
		row.Remote = time.Duration(r.signed())
	case fieldUniqueFor:
		row.UniqueFor = time.Duration(r.signed())
	case fieldRunAtEdited:
		row.RunAtEdited = r.time()
	case fieldDeadlineEdited:
		row.DeadlineEdited = r.time()
	default: // only a newer program knows it
	}
}

func (r *reader) step() (s queue.Step) {
	in := r.inside(stepNames[:])
	for in.next() {
		switch in.field {
		case stepAt:
			s.At = in.time()
		case stepOn:
			s.On = queue.Trigger(in.small())
		case stepTo:
			s.To = queue.State(in.small())
		case stepBy:
			s.By = in.text()
		case stepToken:
			s.Token = queue.Token(in.number())
		case stepDetail:
			s.Detail = in.text()
		default: // only a newer program knows it
		}
	}
	r.err = in.err
	return s
}

func (r *reader) label() (key, value string) {
	in := r.inside(labelNames[:])
	for in.next() {
		switch in.field {
		case labelKey:
			key = in.text()
		case labelValue:
			value = in.text()
		default: // only a newer program knows it
		}
	}
	r.err = in.err
	return key, value
}
