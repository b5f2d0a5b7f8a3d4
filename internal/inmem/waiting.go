package inmem

import (
	"context"
	"encoding/json"
	"slices"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// Waiting gives the documents of an environment that wait in one of statuses, a few at a time. See writer.Backlog.
func (d *Documents) Waiting(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]writer.Waiting) (more bool, err error)) error {
	const op, pageSize = "inmem: waiting", 100
	if err := ended(ctx, op); err != nil {
		return err
	}
	docs, err := d.between(sysName, from, to)
	if err != nil {
		return err
	}
	var found []writer.Waiting
	for _, doc := range docs {
		w, ok, err := waiting(doc, statuses)
		if err != nil {
			return err
		}
		if ok {
			found = append(found, w)
		}
	}
	for chunk := range slices.Chunk(found, pageSize) {
		if err := ended(ctx, op); err != nil {
			return err
		}
		if more, err := page(chunk); err != nil || !more {
			return err
		}
	}
	return nil
}

// waiting tells of a document what the port tells, if its status is one of those asked for. What stands in the place of
// sql_writer and is no object has no status.
func waiting(doc json.RawMessage, statuses []invoice.Status) (w writer.Waiting, ok bool, err error) {
	members := object(doc)
	own := object(members["sql_writer"])
	if !asked(own["status"], statuses) {
		return writer.Waiting{}, false, nil
	}
	var ts int64
	state := invoice.State{Status: invoice.Pending}
	err = json.Unmarshal(members["_ts"], &ts)
	if err == nil && own != nil {
		err = json.Unmarshal(members["sql_writer"], &state)
	}
	if err != nil {
		return writer.Waiting{}, false, fault.Wrap(fault.Internal, "inmem: waiting", "marshal", "a stored document cannot be read", err)
	}
	id, _ := text(members["id"]) // Put takes no document without
	return writer.WaitingOf(id, ts, state), true, nil
}

// asked reports whether a status as it stands, nil when it is not there, is one of those asked for.
func asked(found json.RawMessage, statuses []invoice.Status) bool {
	if found == nil || string(found) == "null" {
		return slices.Contains(statuses, invoice.Pending)
	}
	status, ok := text(found)
	return ok && slices.ContainsFunc(statuses, func(s invoice.Status) bool { return slices.Contains(writer.Spellings(s), status) })
}
