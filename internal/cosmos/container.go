package cosmos

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/singleflight"

	"sqlwriter/internal/timer"
)

// Container is one container of an account. It is safe for concurrent use.
type Container struct {
	options   Options
	build     buildFunc
	transport *http.Client
	// sdk is nil until a client has reached the account (see doc.go, "The first request").
	sdk        atomic.Pointer[connected]
	connecting singleflight.Group
}

// connected is a client that has reached its account.
type connected struct {
	client    *azcosmos.Client
	container *azcosmos.ContainerClient
	// key is the partition key of the definition that was read last; nil without one that can be used.
	key atomic.Pointer[partitionKey]
}

// Ping reads the container's definition, which proves the address, the right, the container and its partition key. It
// costs 1 RU and is for start-up, not for every health check. Errors by kind: infrastructure, throttled.
func (c *Container) Ping(ctx context.Context) error {
	_, _, err := c.readDefinition(ctx)
	return err
}

// HasTimeToLive is Ping, and reports whether the container's default time to live is set, so that documents with a ttl
// expire. -1 sets it for no other document.
func (c *Container) HasTimeToLive(ctx context.Context) (set bool, err error) {
	_, p, err := c.readDefinition(ctx)
	return p.DefaultTimeToLive != nil, err
}

// PartitionKey gives the paths of the container's partition key, as its definition had them when it was read last; ""
// before that. It makes no request.
func (c *Container) PartitionKey() string {
	if s := c.sdk.Load(); s != nil {
		if k := s.key.Load(); k != nil {
			return k.text
		}
	}
	return ""
}

// Close closes idle connections and frees the SDK's caches. No call may be in progress or follow.
func (c *Container) Close() {
	if s := c.sdk.Swap(nil); s != nil {
		s.client.Close()
	}
	c.transport.CloseIdleConnections()
}

// do makes one call of the SDK within its deadline and translates its error. A 449 means that the service met another
// write of the same document and did nothing. do retries it three times, after 10, 20 and 40 ms plus up to as much
// jitter, because the SDK does not (docs/facts.md F70).
func (c *Container) do(
	ctx context.Context, op operation, bound time.Duration, call func(context.Context, *connected) error,
) error {
	const repeats, first = 3, 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	s, err := c.connect(ctx)
	if err != nil {
		return translate(operation{op.name, onContainer}, err)
	}
	for try := 0; ; try++ {
		err := call(ctx, s)
		if err == nil {
			return nil
		}
		err = translate(op, err)
		if try == repeats || statusOf(err) != statusRetryWith {
			return err
		}
		wait := first << try
		if timer.Wait(ctx, wait+rand.N(wait)) != nil {
			return err
		}
	}
}

// statusRetryWith is 449, which net/http has no name for.
const statusRetryWith = 449

// connect gives the current client. If it is missing, one goroutine makes it for all callers, which wait no longer than
// their own deadlines.
func (c *Container) connect(ctx context.Context) (*connected, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := c.sdk.Load(); s != nil {
		return s, nil
	}
	flight := c.connecting.DoChan("account", func() (any, error) {
		if s := c.sdk.Load(); s != nil {
			return s, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.Timeouts.Ping)
		defer cancel()
		return c.reach(ctx)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		s, ok := result.Val.(*connected)
		if !ok {
			return nil, errors.New("no client was made")
		}
		return s, nil
	}
}

// reach makes a client and proves it with a read of the container's metadata.
func (c *Container) reach(ctx context.Context) (*connected, error) {
	client, err := c.build(clientOptions(c.transport))
	if err != nil {
		return nil, err
	}
	container, err := client.NewContainer(c.options.Database, c.options.Container)
	if err != nil {
		client.Close()
		return nil, err
	}
	r, err := container.Read(ctx, nil)
	if err != nil && !passedAccount(err) {
		client.Close()
		return nil, err
	}
	s := &connected{client: client, container: container}
	if err == nil {
		_, _ = c.learn(s, *r.ContainerProperties) // a call for a document reads the definition again, and tells
	}
	c.sdk.Store(s)
	return s, nil
}

// passedAccount reports whether an error is an answer about something below the account. The client then knows the
// account's regions. The call itself meets the remaining problem, such as a missing container, and reports it.
func passedAccount(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.RawResponse != nil && answer.RawResponse.Request != nil &&
		strings.Trim(answer.RawResponse.Request.URL.Path, "/") != ""
}
