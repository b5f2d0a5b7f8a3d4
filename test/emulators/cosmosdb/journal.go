package cosmosdb

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// journal is the append-only file that makes a killed server come back. Each record is one line: the CRC-32
// (IEEE) of the JSON text in eight hexadecimal digits, a blank, the JSON text. A record is handed to the
// operating system in one write before the request is acknowledged, so it survives the death of the
// process; there is no fsync, so it need not survive the death of the machine.
//
// A nil journal keeps nothing.
type journal struct {
	mu   sync.Mutex
	file *os.File
	size int64
	// broken is set when a failed write could not be taken back: nothing may follow a torn record.
	broken error
}

// Journal record types, member "t".
const (
	recDatabase         = "db"
	recDropDatabase     = "-db"
	recContainer        = "coll"
	recReplaceContainer = "=coll"
	recDropContainer    = "-coll"
	recDocuments        = "docs"
	recSplit            = "split"
)

var errJournalClosed = errors.New("the server is closed")

func (j *journal) append(record []byte) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.file == nil:
		return errJournalClosed
	case j.broken != nil:
		return j.broken
	}
	line := frame(record)
	if _, err := j.file.Write(line); err != nil {
		err = fmt.Errorf("cosmosdb: journal: %w", err)
		if undo := j.file.Truncate(j.size); undo != nil {
			j.broken = errors.Join(err, undo)
		}
		return err
	}
	j.size += int64(len(line))
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

func frame(record []byte) []byte {
	line := make([]byte, 0, len(record)+10)
	line = fmt.Appendf(line, "%08x ", crc32.ChecksumIEEE(record))
	return append(append(line, record...), '\n')
}

// unframe is the record of a line without its newline; ok is false when it is torn.
func unframe(line string) (record string, ok bool) {
	if len(line) < 10 || line[8] != ' ' {
		return "", false
	}
	sum, err := strconv.ParseUint(line[:8], 16, 32)
	record = line[9:]
	return record, err == nil && uint32(sum) == crc32.ChecksumIEEE([]byte(record))
}

// documents records one unit of writes.
func (j *journal) documents(t *txn, changes []change) error {
	if j == nil {
		return nil
	}
	record := fmt.Appendf(nil, `{"t":"%s","c":"%s","r":%d,"lsn":%d,"put":[`, recDocuments, t.c.rid, t.rng.index, t.lsn)
	var deleted []uint64
	first := true
	for _, ch := range changes {
		if ch.doc == nil {
			if ch.slot.doc != nil {
				deleted = append(deleted, ch.slot.number)
			}
			continue
		}
		if !first {
			record = append(record, ',')
		}
		first = false
		record = fmt.Appendf(record, `{"n":%d,"doc":%s}`, ch.slot.number, ch.doc.raw)
	}
	record = append(record, `],"del":[`...)
	for i, n := range deleted {
		if i > 0 {
			record = append(record, ',')
		}
		record = strconv.AppendUint(record, n, 10)
	}
	return j.append(append(record, "]}"...))
}

// field is a member of a small record, which is built as a value.
type field struct {
	name  string
	value jsonval.Value
}

func text(name, value string) field         { return field{name, jsonval.OfString(value)} }
func number(name string, value int64) field { return field{name, jsonval.OfInt(value)} }

func record(kind string, fields ...field) []byte {
	names, values := []string{"t"}, []jsonval.Value{jsonval.OfString(kind)}
	for _, f := range fields {
		names, values = append(names, f.name), append(values, f.value)
	}
	return jsonval.OfObject(names, values).AppendJSON(nil)
}

func (d *database) record() []byte {
	return record(recDatabase, text("id", d.id), text("rid", d.rid), text("etag", d.etag), number("ts", d.ts))
}

func (c *container) record(kind string) []byte {
	ranges := make([]jsonval.Value, len(c.ranges))
	for i, r := range c.ranges {
		parents := make([]jsonval.Value, len(r.parents))
		for j, p := range r.parents {
			parents[j] = jsonval.OfString(p)
		}
		ranges[i] = jsonval.OfObject([]string{"r", "low", "high", "lsn", "parents"}, []jsonval.Value{
			jsonval.OfInt(int64(r.index)), jsonval.OfString(r.low), jsonval.OfString(r.high), jsonval.OfInt(r.lsn),
			jsonval.OfArray(parents),
		})
	}
	return record(kind, text("db", c.dbID), text("id", c.id), text("rid", c.rid),
		text("etag", c.etag), number("ts", c.ts),
		number("next", int64(c.next)), field{"ranges", jsonval.OfArray(ranges)}, field{"props", c.props})
}

// openJournal reads the file into the server, rewrites it without what is overtaken, and opens it for
// appending. A torn last record, of a write that was never acknowledged, is dropped; a broken record
// before the last is an error, because acknowledged writes would be lost with it.
func (s *Server) openJournal(path string) error {
	if err := s.replay(path); err != nil {
		return err
	}
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cosmosdb: journal: %w", err)
	}
	size, err := s.snapshot(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cosmosdb: journal: compacting %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("cosmosdb: journal: %w", err)
	}
	file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cosmosdb: journal: %w", err)
	}
	s.journal.file, s.journal.size = file, size
	return nil
}

// snapshot writes the present state as records.
func (s *Server) snapshot(to io.Writer) (size int64, err error) {
	out := bufio.NewWriterSize(to, 1<<20)
	write := func(record []byte) {
		n, e := out.Write(frame(record))
		size += int64(n)
		err = errors.Join(err, e)
	}
	for _, db := range s.databases {
		write(db.record())
		for _, c := range db.containers {
			write(c.record(recContainer))
			for _, r := range c.ranges {
				for _, sl := range r.slots {
					if sl.doc != nil && !c.ttl.expired(sl.doc, c.now()) {
						write(fmt.Appendf(nil, `{"t":"%s","c":"%s","r":%d,"lsn":%d,"put":[{"n":%d,"doc":%s}],"del":[]}`,
							recDocuments, c.rid, r.index, sl.doc.lsn, sl.number, sl.doc.raw))
					}
				}
			}
		}
	}
	return size, errors.Join(err, out.Flush())
}

// replay reads every record of the file; a file that is not there is an empty journal.
func (s *Server) replay(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cosmosdb: journal: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	in := bufio.NewReaderSize(file, 1<<20)
	l := loader{server: s, byRID: map[string]*loading{}}
	torn := int64(-1)
	for offset := int64(0); ; {
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("cosmosdb: journal: %w", err)
		}
		if line == "" {
			break
		}
		if torn >= 0 {
			return fmt.Errorf(
				"cosmosdb: journal %s: the record at byte %d is damaged and more follow it; restore the file or start anew without it", path, torn)
		}
		text, whole := strings.CutSuffix(line, "\n")
		record, ok := unframe(text)
		if !whole || !ok {
			torn = offset
		} else if err := l.apply(record); err != nil {
			return fmt.Errorf("cosmosdb: journal %s: record at byte %d: %w", path, offset, err)
		}
		offset += int64(len(line))
	}
	l.finish()
	return nil
}
