// Package neterr tells what a call over the network died of, for the adapters of every service alike: by type, however deep
// an SDK has wrapped the error, and without repeating the request's address, which may hold a signature or a document's id.
//
// It knows neither kinds nor codes. Each adapter's table of lost answers (its classify.go) says which question is asked
// first and what the answer means there. The order matters, because an error may be of several sorts: a lookup of a name that
// took too long is IsDNS and IsTimeout. Nil is of no sort.
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

// IsCancelled reports whether the caller gave up. A deadline that passed is IsTimeout.
func IsCancelled(err error) bool {
	return errors.Is(err, context.Canceled)
}

// IsDNS reports whether a host's name could not be looked up: there is no such name, or nobody said so in time.
func IsDNS(err error) bool {
	return as[*net.DNSError](err)
}

// IsTLS reports whether the other end could not be trusted (a certificate of an unknown authority, for another host, or out
// of its time), or does not speak TLS. An alert that the other end sends over TCP is not among these: crypto/tls does not
// export its type.
func IsTLS(err error) bool {
	return as[*tls.CertificateVerificationError](err) || as[tls.RecordHeaderError](err) || as[tls.AlertError](err)
}

// IsRefused reports whether nothing listens at the address.
func IsRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED)
}

// IsUnreachable reports whether there is no way to the address.
func IsUnreachable(err error) bool {
	return isAny(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN)
}

// IsReset reports whether the other end, or somebody between, broke the connection off. The request may have been carried out.
func IsReset(err error) bool {
	return isAny(err, syscall.ECONNRESET, syscall.EPIPE)
}

// IsTimeout reports whether no answer came in time, whoever set the time. The request may have been carried out.
func IsTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return isAny(err, context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT) || (errors.As(err, &t) && t.Timeout())
}

// IsEOF reports whether the connection ended before the answer did. The request may have been carried out.
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
