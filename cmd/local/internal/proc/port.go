package proc

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// Port returns the preferred port of the loopback address if it is free, else another free port.
func Port(ctx context.Context, preferred int) (int, error) {
	var lc net.ListenConfig
	for _, port := range []int{preferred, 0} {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		a, ok := l.Addr().(*net.TCPAddr)
		if err := l.Close(); err != nil || !ok {
			continue
		}
		return a.Port, nil
	}
	return 0, fmt.Errorf("no port of 127.0.0.1 is free (tried %d and any)", preferred)
}
