package neterr

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Describe gives the part of an error that helps an operator: the host and what the system said. URLs, which hold names of
// documents and files and may hold a signature, and the layers of an SDK are left out; of what is neither a lookup, nor a
// certificate, nor an operation of net's, only the type is told, since its text may be anything.
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

// RootType names the type of the first cause of all, "*errors.errorString": of an error whose text may hold a token or a
// document it is all that can be told.
func RootType(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return fmt.Sprintf("%T", err)
		}
		err = next
	}
}

// Redact puts a text of our own in the place of an error's: an SDK's repeats the service's whole reply, which may quote a
// document, and the request's URL. The error stays reachable with errors.Is and errors.As.
func Redact(err error, text string) error {
	return &redacted{text: text, err: err}
}

type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }
