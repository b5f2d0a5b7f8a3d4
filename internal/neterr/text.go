package neterr

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Describe returns the useful part of an error for operators: the host and the system's message. It omits URLs, which
// may have document ids and signatures, and the layers of an SDK. Other errors than those of lookups, certificates and
// package net are described by their type, because their text may be anything.
func Describe(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.Error()
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return cert.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) && !as[*url.Error](op.Err) {
		return op.Error()
	}
	return RootType(err)
}

// RootType returns the type of the innermost cause, "*errors.errorString", for errors whose text may have a token or a
// document.
func RootType(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return fmt.Sprintf("%T", err)
		}
		err = next
	}
}

// Redact replaces an error's text by ours: an SDK's text repeats the request's URL and the service's reply, which may
// quote a document. errors.Is and errors.As still find the error.
func Redact(err error, text string) error {
	return &redacted{text: text, err: err}
}

type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }
