package handlers

import (
	"errors"
	"io"
	"net/http"
)

// errTooLarge says that a body is longer than the limit.
var errTooLarge = errors.New("the body is larger than the limit")

// The segments that a body of unknown length is read into.
const (
	firstSegment = 64 << 10
	lastSegment  = 8 << 20
)

// readBody reads a request's body into one buffer of exactly its size, because envelope.go works in place on it. The host
// sends no Content-Length unless it traces requests (ObjectContent does not know its length), so the usual body is read
// into segments that are joined at the end: twice its size for a moment, where growing one buffer would take up to three
// times. A body over the limit is read to its end and dropped, so that the host gets an answer instead of a reset.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	switch n := r.ContentLength; {
	case n > limit:
		return nil, drain(r.Body)
	case n >= 0:
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	var segments [][]byte
	var total int64
	for size := firstSegment; ; size = min(2*size, lastSegment) {
		segment := make([]byte, size)
		n, err := io.ReadFull(r.Body, segment)
		segments = append(segments, segment[:n])
		if total += int64(n); total > limit {
			return nil, drain(r.Body)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(segments) == 1 {
		return segments[0], nil
	}
	body := make([]byte, 0, total)
	for i, segment := range segments {
		body = append(body, segment...)
		segments[i] = nil
	}
	return body, nil
}

// drain drops the rest of a body that is too large.
func drain(body io.Reader) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	return errTooLarge
}
