package outage

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// File switches a SQLite file in WAL mode off. Every connection of every process then fails with SQLITE_CANTOPEN at its
// next transaction, as for a file that is not there. Moving the file would not do that: a connection keeps the file
// that it has.
//
// Off writes another version into the header of the file's shared memory (the wal-index). A connection that finds a
// version it does not know refuses to work (walIndexReadHdr in SQLite's wal.c; sqlite.org/walformat.html has the
// layout). The shared memory has no data: when all processes that have the file open end, the next one makes it anew.
// So an outage ends with them.
type File struct {
	path string
	db   *sql.DB
	// memory stays open as long as the process: closing it would release the locks that SQLite has on it in this
	// process.
	memory *os.File
	tx     *sql.Tx
	saved  header
}

// NewFile makes the switch of a SQLite file. db are connections that write to it.
func NewFile(path string, db *sql.DB) *File { return &File{path: path, db: db} }

// The header of the wal-index is in the byte order of the machine, and there twice.
const (
	headerSize = 48
	// summed is the part of the header before its checksum.
	summed = 40
	// otherVersion is a version of the header that no SQLite knows; they have 3007000.
	otherVersion = 9_999_999
)

type header [headerSize]byte

// Off starts the outage. It holds the write lock until On, so that the header does not change meanwhile.
func (f *File) Off(ctx context.Context) (err error) {
	if f.tx, err = f.db.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		return fmt.Errorf("switch SQL off: %w", err)
	}
	if err := f.switchOff(); err != nil {
		return fmt.Errorf("switch SQL off: %w", errors.Join(err, f.tx.Rollback()))
	}
	return nil
}

func (f *File) switchOff() (err error) {
	if f.memory == nil {
		if f.memory, err = os.OpenFile(f.path+"-shm", os.O_RDWR, 0); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(io.NewSectionReader(f.memory, 0, headerSize), f.saved[:]); err != nil {
		return err
	}
	off := f.saved
	binary.NativeEndian.PutUint32(off[:], otherVersion)
	var a, b uint32
	for i := 0; i < summed; i += 8 {
		a += binary.NativeEndian.Uint32(off[i:]) + b
		b += binary.NativeEndian.Uint32(off[i+4:]) + a
	}
	binary.NativeEndian.PutUint32(off[summed:], a)
	binary.NativeEndian.PutUint32(off[summed+4:], b)
	return f.write(off)
}

// On ends the outage.
func (f *File) On(context.Context) error {
	return errors.Join(f.write(f.saved), f.tx.Rollback())
}

// write writes both copies in the order of SQLite, which takes a reader that comes between them for one that must wait.
func (f *File) write(h header) error {
	for _, at := range []int64{headerSize, 0} {
		if _, err := f.memory.WriteAt(h[:], at); err != nil {
			return err
		}
	}
	return nil
}
