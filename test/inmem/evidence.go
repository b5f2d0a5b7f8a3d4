package inmem

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Evidence keeps files in memory. It implements commit.Evidence and ops.EvidenceStore and is safe for concurrent use.
type Evidence struct {
	now func() time.Time

	mu    sync.Mutex
	files map[string][]byte
	// times are when the files were stored.
	times map[string]time.Time
}

var _ commit.Evidence = (*Evidence)(nil)

// NewEvidence makes an Evidence without files.
func NewEvidence() *Evidence { return NewEvidenceOn(time.Now) }

// NewEvidenceOn is NewEvidence on a clock.
func NewEvidenceOn(now func() time.Time) *Evidence {
	return &Evidence{now: now, files: map[string][]byte{}, times: map[string]time.Time{}}
}

// Keep stores a file under a name unless there is one already. See commit.Evidence.
func (e *Evidence) Keep(ctx context.Context, name string, content []byte) error {
	if err := commit.CheckEvidenceName(name); err != nil {
		return err
	}
	if err := ended(ctx, "inmem: keep"); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.files[name]; !there {
		e.files[name], e.times[name] = slices.Clone(content), e.now().UTC().Truncate(time.Second)
	}
	return nil
}

// Read gives a file. Errors by kind: condition Gone when it does not exist; infrastructure; internal for an invalid
// name.
func (e *Evidence) Read(ctx context.Context, name string) ([]byte, error) {
	if err := commit.CheckEvidenceName(name); err != nil {
		return nil, err
	}
	const op = "inmem: read evidence"
	if err := ended(ctx, op); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	content, there := e.files[name]
	if !there {
		return nil,
			&fault.Error{Kind: fault.Document, Condition: fault.Gone, Op: op, Code: "gone", Reason: "no such file"}
	}
	return slices.Clone(content), nil
}

// Files gives all files by name: a copy, whose contents must not be changed.
func (e *Evidence) Files() map[string][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.files)
}
