package sqlserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// The bounds of what the driver does without asking the caller's context (v1.11.2, tds.go, connect and sendAttention): it
// dials within it, but reads the answers to the login and sends its requests for as long as the other end keeps the
// connection. What stands in for a server during a failover may keep it for ever.
const (
	// loginTimeout bounds one login, dialling included.
	loginTimeout = 30 * time.Second
	// sendTimeout is how long the other end may take nothing of what is sent.
	sendTimeout = 30 * time.Second
)

// bounded makes connections within the caller's time, and within loginTimeout.
type boundedConnector struct{ *mssql.Connector }

// newBounded puts the bounds around a connector of the driver's.
func newBoundedConnector(c *mssql.Connector, keepAlive time.Duration) boundedConnector {
	c.Dialer = dialer{net.Dialer{KeepAlive: keepAlive}}
	return boundedConnector{c}
}

// Connect implements driver.Connector.
func (b boundedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	l := &login{}
	stop := context.AfterFunc(ctx, l.abort)
	conn, err := b.Connector.Connect(context.WithValue(ctx, loginKey{}, l))
	if !stop() { // it was cut, whatever the driver made of that
		if err == nil { // conn is no nil otherwise, and yet nothing: a *mssql.Conn
			err = conn.Close()
		}
		return nil, fmt.Errorf("log in: %w", errors.Join(ctx.Err(), err))
	}
	return conn, err
}

// loginKey finds the login in the context that the driver dials with.
type loginKey struct{}

// login is one login under way: the connections that were dialled for it.
type login struct {
	mu      sync.Mutex
	conns   []net.Conn
	aborted bool
}

// add notes a connection; one that comes too late is closed.
func (l *login) add(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aborted {
		_ = conn.Close() // nobody waits for it
		return
	}
	l.conns = append(l.conns, conn)
}

// cut ends the login: whoever reads or writes there learns of it.
func (l *login) abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aborted = true
	for _, conn := range l.conns {
		_ = conn.Close() // that is the point
	}
}

// dialer is the driver's, and tells the login of what it dialled.
type dialer struct{ net.Dialer }

// DialContext implements mssql.Dialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if l, ok := ctx.Value(loginKey{}).(*login); ok {
		l.add(conn)
	}
	return boundedSender{conn, sendTimeout}, nil
}

// sending is a connection on which nothing is sent for longer than within.
type boundedSender struct {
	net.Conn
	timeout time.Duration
}

// Write implements net.Conn.
func (s boundedSender) Write(p []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, err
	}
	return s.Conn.Write(p)
}
