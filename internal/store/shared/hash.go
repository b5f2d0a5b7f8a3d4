package shared

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"

	"sqlwriter/internal/fault"
)

// Hash is a SHA-256 as lower-case hex, the form of the program; empty is NULL. A database has its 32 bytes, which are
// in the same order.
type Hash string

// Scan implements sql.Scanner.
func (h *Hash) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*h = ""
	case []byte:
		*h = Hash(hex.EncodeToString(v))
	default:
		return fmt.Errorf("expected the bytes of a hash, found %T", value)
	}
	return nil
}

// bytes are what a database has. Errors by kind: internal, code "bug".
func (h Hash) bytes() ([]byte, error) {
	b, err := hex.DecodeString(string(h))
	if err != nil || len(b) != sha256.Size {
		return nil,
			fault.New(fault.Internal, opEncode, fault.CodeBug,
				"expected a hash of %d hex digits, found %d bytes", 2*sha256.Size, len(h))
	}
	return b, nil
}

// hashList is the parameter @hashes of a statement: hashes one after the other, because JSON has no bytes and no engine
// reads hex as every other does. JSON names a hash by its place, from 0.
type hashList []byte

// add returns the place of a hash.
func (l *hashList) add(h Hash) (place int, err error) {
	b, err := h.bytes()
	*l = append(*l, b...)
	return len(*l)/sha256.Size - 1, err
}

// HashArg makes the parameter of one hash. One that is empty sorts before every other.
func HashArg(name, hash string) sql.NamedArg {
	b, err := Hash(hash).bytes()
	if err != nil {
		b = make([]byte, sha256.Size)
	}
	return sql.Named(name, b)
}
