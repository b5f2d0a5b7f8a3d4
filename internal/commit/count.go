package commit

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// count counts one document. OnResult is not called without an id.
func (p *pass) count(id, outcome string, kind fault.Kind) {
	p.reportResult(DocumentResult{ID: id, Outcome: outcome, Kind: kind})
}

// resultOf is the result of a failed document.
func resultOf(id, outcome string, err error) DocumentResult {
	t := DocumentResult{ID: id, Outcome: outcome, Kind: fault.KindOf(err), Code: fault.CodeOf(err)}
	if e := fault.As(err); e != nil {
		t.Reason = e.Reason // a driver's own text may hold content
	}
	return t
}

// reportResult counts one document and calls OnResult.
func (p *pass) reportResult(t DocumentResult) {
	p.mu.Lock()
	p.report.Outcomes[t.Outcome]++
	p.counted++
	if t.Kind != "" {
		p.report.Kinds[string(t.Kind)]++
	}
	p.mu.Unlock()
	if p.batch.OnResult != nil && t.ID != "" {
		p.batch.OnResult(t)
	}
}

// countResult counts and logs a recorded result.
func (p *pass) countResult(id string, res result, s invoice.State) {
	if !res.failed() {
		p.count(id, s.Outcome, "")
		return
	}
	kind := fault.KindOf(res.err) // the minimal state has no kind
	result := resultOf(id, string(s.Status), res.err)
	result.RetryCount, result.Again = s.RetryCount, s.Status == invoice.RetryScheduled
	p.reportResult(result)
	event := p.c.o.Log.Warn()
	if kind == fault.Internal || s.Status == invoice.Failed {
		event = p.c.o.Log.Error()
	}
	event.Str("document", id).Str("status", string(s.Status)).Str("kind", string(kind)).
		Str("code", fault.CodeOf(res.err)).Int("retry_count", s.RetryCount).Int64("retry_after", s.RetryAfter).
		Msg("the document was not written")
}

// countRest counts the documents that have no result.
func (p *pass) countRest(outcome string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rest := p.report.Documents - p.counted; rest > 0 {
		p.report.Outcomes[outcome] += rest
	}
}

func (p *pass) countSQL(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.SQLRequests++
	p.report.SQL += d
}

func (p *pass) countRead(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Reads++
	p.report.Cosmos += d
}

func (p *pass) countWrite(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Writes++
	p.report.Cosmos += d
}

// lag is the age of the oldest document of the batch, by its _ts; zero without a _ts.
func (p *pass) lag() time.Duration {
	if p.oldest == 0 {
		return 0
	}
	return max(0, p.c.o.Now().Sub(time.Unix(p.oldest, 0)))
}
