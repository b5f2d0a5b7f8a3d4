package funchost

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// changeSource reads a container's change feed in the latest-version mode.
type changeSource interface {
	// name is what leases of this container have in their ids: host name of the account, resource ids of database and
	// container.
	name() string
	// ranges lists the ranges that there are now.
	ranges(ctx context.Context) ([]keyRange, error)
	// page reads what changed in a range after continuation, or, when that is empty, from the given time on. The error
	// is errRangeGone when the range was split.
	page(ctx context.Context, from position) (changes, error)
}

// keyRange is a physical partition; parents are the ranges that it came from by splits.
type keyRange struct {
	ID      string   `json:"id"`
	Min     string   `json:"minInclusive"`
	Max     string   `json:"maxExclusive"`
	Parents []string `json:"parents"`
}

// position is where to read on.
type position struct {
	rangeID      string
	continuation string
	maxItems     int32 // 0 = the service's default
}

// changes is one page. An empty one means that there is nothing for now.
type changes struct {
	items        []json.RawMessage
	continuation string
}

var errRangeGone = errors.New("the range was split")

// feedClient speaks the service's protocol itself: azcosmos follows a split inside of its continuation, while the .NET
// processor sees it and makes new leases.
type feedClient struct {
	http              *http.Client
	endpoint          string // with a slash at its end
	key               []byte
	identity          azcore.TokenCredential // when there is no key
	link              string                 // dbs/…/colls/…
	databaseID, ownID string                 // resource ids
}

func (c *feedClient) name() string {
	host := ""
	if u, err := url.Parse(c.endpoint); err == nil {
		host = u.Hostname()
	}
	return host + "_" + c.databaseID + "_" + c.ownID
}

func (c *feedClient) ranges(ctx context.Context) ([]keyRange, error) {
	response, body, err := c.get(ctx, "pkranges", http.Header{}) //nolint:bodyclose // once closes it, and body has its bytes
	if err != nil {
		return nil, fmt.Errorf("read ranges: %w", err)
	}
	var list struct{ PartitionKeyRanges []keyRange }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read ranges: %w", err)
	}
	if response.Header.Get("X-Ms-Continuation") != "" {
		return nil, errors.New("read ranges: this emulator reads one page of them")
	}
	return list.PartitionKeyRanges, nil
}

func (c *feedClient) page(ctx context.Context, from position) (changes, error) {
	header := http.Header{"A-Im": {"Incremental Feed"}, "X-Ms-Documentdb-Partitionkeyrangeid": {from.rangeID}}
	if from.maxItems > 0 {
		header.Set("X-Ms-Max-Item-Count", strconv.Itoa(int(from.maxItems)))
	}
	if from.continuation != "" {
		header.Set("If-None-Match", from.continuation)
	}
	response, body, err := c.get(ctx, "docs", header) //nolint:bodyclose // once closes it, and body has its bytes
	if err != nil {
		return changes{}, fmt.Errorf("read change feed: %w", err)
	}
	out := changes{continuation: response.Header.Get("Etag")}
	if response.StatusCode == http.StatusNotModified {
		return out, nil
	}
	var list struct{ Documents []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil {
		return changes{}, fmt.Errorf("read change feed: %w", err)
	}
	out.items = list.Documents
	return out, nil
}

const (
	throttleRetries = 9    // of the .NET client, inside of one read
	rangeGone       = 1002 // substatus of 410: the range was split
)

// get reads a feed of the container. A 429 is waited for as told; any other error is the caller's.
func (c *feedClient) get(ctx context.Context, kind string, header http.Header) (*http.Response, []byte, error) {
	for try := 0; ; try++ {
		response, body, err := c.once(ctx, kind, header)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotModified:
			return response, body, nil
		case response.StatusCode == http.StatusTooManyRequests && try < throttleRetries:
			wait, _ := strconv.Atoi(response.Header.Get("X-Ms-Retry-After-Ms"))
			if !(systemClock{}).Sleep(ctx, time.Duration(wait)*time.Millisecond, waitThrottled) {
				return nil, nil, ctx.Err()
			}
		case response.StatusCode == http.StatusGone && response.Header.Get("X-Ms-Substatus") == strconv.Itoa(rangeGone):
			return nil, nil, errRangeGone
		default:
			return nil, nil, &feedStatus{response.StatusCode, response.Header.Get("X-Ms-Substatus")}
		}
	}
}

// feedStatus is an answer that is an error.
type feedStatus struct {
	status    int
	substatus string
}

func (e *feedStatus) Error() string {
	return fmt.Sprintf("status %d (%s), substatus %s", e.status, http.StatusText(e.status), e.substatus)
}

func (c *feedClient) once(ctx context.Context, kind string, header http.Header) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.endpoint+c.link+"/"+kind, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header = header.Clone()
	request.Header.Set("X-Ms-Version", "2020-11-05")
	date := time.Now().UTC().Format(http.TimeFormat) // not the host's clock: the service compares it with its own
	request.Header.Set("X-Ms-Date", date)
	token, err := c.token(ctx, kind, date)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", url.QueryEscape(token))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

// token signs a request as the REST reference says, or shows the identity's token.
func (c *feedClient) token(ctx context.Context, kind, date string) (string, error) {
	if c.identity != nil {
		account, err := url.Parse(c.endpoint)
		if err != nil {
			return "", err
		}
		token, err := c.identity.GetToken(ctx, // for the account by its name, without the port
			policy.TokenRequestOptions{Scopes: []string{account.Scheme + "://" + account.Hostname() + "/.default"}})
		return "type=aad&ver=1.0&sig=" + token.Token, err
	}
	mac := hmac.New(sha256.New, c.key)
	_, _ = io.WriteString(mac, "get\n"+kind+"\n"+c.link+"\n"+strings.ToLower(date)+"\n\n")
	return "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
