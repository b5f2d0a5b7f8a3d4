package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/test/emulators/cosmosdb/provision"
)

// feedPoll is the interval of reading the change feed, and the error of the measured times.
const feedPoll = 20 * time.Millisecond

// seen is the last state of a document in the change feed.
type seen struct {
	etag string
	// status and outcome are those of sql_writer.
	status, outcome string
	// at is the time of the reading.
	at time.Time
}

// final reports whether the handler has processed the document; a retry may follow later.
func (s seen) final() bool {
	return s.status == "committed" || s.status == "failed" || s.status == "retry_scheduled"
}

// watcher follows the container's change feed and stores each document's last state.
type watcher struct {
	container provision.Documents
	mu        sync.Mutex
	docs      map[string]seen
	changed   chan struct{} // closed and replaced at each change
}

// newWatcher makes a watcher without connecting.
func newWatcher(endpoint, database, container string) (*watcher, error) {
	cred, err := azcosmos.NewKeyCredential(cosmosKey)
	if err != nil {
		return nil, err
	}
	options := &azcosmos.ClientOptions{}
	options.Telemetry = policy.TelemetryOptions{ApplicationID: "local-run"}
	client, err := azcosmos.NewClientWithKey(endpoint, cred, options)
	if err != nil {
		return nil, err
	}
	c, err := client.NewContainer(database, container)
	if err != nil {
		return nil, err
	}
	return &watcher{
		container: provision.Documents{ContainerClient: c}, docs: map[string]seen{}, changed: make(chan struct{}),
	}, nil
}

// state is the part of a document that the watcher reads.
type state struct {
	ID     string `json:"id"`
	ETag   string `json:"_etag"`
	Writer struct {
		Status     string `json:"status"`
		Outcome    string `json:"outcome"`
		RetryCount int    `json:"retry_count"`
		Kind       string `json:"last_error_kind"`
		LastError  string `json:"last_error"`
	} `json:"sql_writer"`
}

// note stores documents as read at a time.
func (w *watcher) note(at time.Time, items ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range items {
		var s state
		if err := json.Unmarshal(item, &s); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		w.docs[s.ID] = seen{etag: s.ETag, status: s.Writer.Status, outcome: s.Writer.Outcome, at: at}
	}
	if len(items) > 0 {
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return nil
}

// start fixes the current position of the feed. follow reads the feed from there until ctx ends or reading fails.
func (w *watcher) start(ctx context.Context) (follow func() error, err error) {
	ranges, err := w.container.ReadFeedRanges(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	from := time.Now().Add(-2 * time.Second) // the feed counts in whole seconds
	positions := make([]*azcosmos.ChangeFeedOptions, len(ranges))
	for i := range ranges {
		positions[i] = &azcosmos.ChangeFeedOptions{FeedRange: &ranges[i], StartFrom: &from, MaxItemCount: 1000}
	}
	return func() error {
		ticker := time.NewTicker(feedPoll)
		defer ticker.Stop()
		for {
			for _, p := range positions {
				if err := w.read(ctx, p); err != nil {
					if ctx.Err() != nil {
						return nil //nolint:nilerr // the end of the watch is not a failure
					}
					return err
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}, nil
}

// read reads one range up to its end and advances the position.
func (w *watcher) read(ctx context.Context, p *azcosmos.ChangeFeedOptions) error {
	for {
		page, err := w.container.ReadChangeFeed(ctx, p)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if page.ContinuationToken != "" {
			token := page.ContinuationToken
			p.Continuation, p.StartFrom = &token, nil
		}
		if len(page.Items) == 0 {
			return nil
		}
		if err := w.note(time.Now(), page.Items...); err != nil {
			return err
		}
	}
}

// get returns a document's last state, and a channel that is closed at the next change of any document.
func (w *watcher) get(id string) (seen, bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.docs[id]
	return s, ok, w.changed
}

// wait waits until a document is final in another version than the one given.
func (w *watcher) wait(ctx context.Context, id, notETag string) (seen, error) {
	for {
		s, ok, changed := w.get(id)
		if ok && s.etag != notETag && s.final() {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("document %s: %w", id, context.Cause(ctx))
		case <-changed:
		}
	}
}
