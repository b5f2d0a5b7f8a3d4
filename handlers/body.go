package handlers

import (
	"errors"
	"io"
	"net/http"
)

// postOf is the longest post of the host in bytes for a caller's body of a length: each quote is escaped. Address,
// headers and identities stand in the post more than once (docs/facts.md F12, F13); the host takes 40 KB of them.
func postOf(body int64) int64 { return 256<<10 + 2*body }

// callOf is the length of a caller's body whose post has a length.
func callOf(post int64) int64 { return (post - postOf(0)) / 2 }

var errTooLarge = errors.New("the body is larger than the limit")

// Sizes of the first and the largest segment of a body of unknown length.
const (
	firstSegment = 64 << 10
	lastSegment  = 8 << 20
)

// readBody reads a request's body into one buffer of its exact size, because documents are slices of it. The host
// usually sends no Content-Length, so the body is read into segments that are joined. This needs twice the size for a
// moment; a growing buffer would need up to three times.
//
// Of a body over the limit no more than the limit is held. It is read to its end and dropped, so that the host gets a
// response instead of a reset.
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
	for size := int64(firstSegment); ; size = min(2*size, lastSegment) {
		segment := make([]byte, min(size, limit-total+1))
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

// drain drops the rest of a body that is too large and returns errTooLarge.
func drain(body io.Reader) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	return errTooLarge
}
