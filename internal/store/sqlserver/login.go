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

// The driver dials within the caller's context. It does not use the context while it reads the answers to the login
// and sends requests (v1.11.2, tds.go, connect and sendAttention). During a failover a proxy may keep such a
// connection open without answering, so these limits bound both.
const (
	// loginTimeout bounds one login, including dialling.
	loginTimeout = 30 * time.Second
	// sendTimeout bounds one write to the connection.
	sendTimeout = 30 * time.Second
)

// boundedConnector makes connections within the caller's time and loginTimeout.
type boundedConnector struct{ *mssql.Connector }

// newBoundedConnector adds the bounds to a connector of the driver.
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
	if !stop() { // it was aborted; the driver may return any error, or none
		if err == nil { // with an error conn is a nil *mssql.Conn
			err = conn.Close()
		}
		return nil, fmt.Errorf("log in: %w", errors.Join(ctx.Err(), err))
	}
	return conn, err
}

// loginKey is the key of the login in the driver's context.
type loginKey struct{}

// login is one running login with the connections dialled for it.
type login struct {
	mu      sync.Mutex
	conns   []net.Conn
	aborted bool
}

// add records a connection. It closes the connection if the login was aborted.
func (l *login) add(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aborted {
		_ = conn.Close() // no login uses it
		return
	}
	l.conns = append(l.conns, conn)
}

// abort ends the login. Closing the connections ends all reads and writes on them.
func (l *login) abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aborted = true
	for _, conn := range l.conns {
		_ = conn.Close() // its error changes nothing
	}
}

// dialer is the driver's dialer; it records each connection in its login.
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

// boundedSender is a connection whose writes end after timeout.
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
