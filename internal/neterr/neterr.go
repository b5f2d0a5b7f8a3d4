// Package neterr classifies failures of network calls by type, for all adapters, however deep an SDK has wrapped them.
// It never repeats the request's address, which may have a signature or a document's id.
//
// Kinds and codes are the adapters': each classify.go has the order of these questions and the meaning of each answer.
// The order matters, because an error may match several: a name lookup that timed out is IsDNS and IsTimeout. Nil
// matches nothing.
package neterr

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// IsCancelled reports whether the caller cancelled. A deadline is IsTimeout.
func IsCancelled(err error) bool {
	return errors.Is(err, context.Canceled)
}

// IsDNS reports whether the lookup of a host name failed or timed out.
func IsDNS(err error) bool {
	return as[*net.DNSError](err)
}

// IsTLS reports whether the server's certificate is not trusted or the server does not speak TLS. Alerts that the
// server sends over TCP are not included, because crypto/tls does not export their type.
func IsTLS(err error) bool {
	return as[*tls.CertificateVerificationError](err) || as[tls.RecordHeaderError](err) || as[tls.AlertError](err)
}

// IsRefused reports whether the connection was refused: nothing listens at the address.
func IsRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED)
}

// IsUnreachable reports whether there is no route to the address.
func IsUnreachable(err error) bool {
	return isAny(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN)
}

// IsReset reports whether the connection was reset. The request may have been executed.
func IsReset(err error) bool {
	return isAny(err, syscall.ECONNRESET, syscall.EPIPE)
}

// IsTimeout reports whether a deadline of any origin passed. The request may have been executed.
func IsTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return isAny(err, context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT) ||
		(errors.As(err, &t) && t.Timeout())
}

// IsEOF reports whether the connection ended before the answer did. The request may have been executed.
func IsEOF(err error) bool {
	return isAny(err, io.EOF, io.ErrUnexpectedEOF)
}

// isAny is errors.Is for several targets.
func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// as reports whether an error of type E is in the chain.
func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
