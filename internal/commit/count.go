package commit

import (
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// count notes how one document ended. Without an id nobody is told.
func (p *pass) count(id, outcome string, kind fault.Kind) {
	p.reportResult(DocumentResult{ID: id, Outcome: outcome, Kind: kind})
}

// resultOf is what there is to tell of a failure.
func resultOf(id, outcome string, err error) DocumentResult {
	t := DocumentResult{ID: id, Outcome: outcome, Kind: fault.KindOf(err), Code: fault.CodeOf(err)}
	if e := fault.As(err); e != nil {
		t.Reason = e.Reason // a driver's own text may hold content
	}
	return t
}

// reportResult notes how one document ended and tells who wants to know.
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

// countResult notes a recorded result and says what an operator should see of it.
func (p *pass) countResult(id string, res result, s invoice.State) {
	if !res.failed() {
		p.count(id, s.Outcome, "")
		return
	}
	kind := fault.KindOf(res.err) // the shortest state no longer says it
	told := resultOf(id, string(s.Status), res.err)
	told.RetryCount, told.Again = s.RetryCount, s.Status == invoice.RetryScheduled
	p.reportResult(told)
	event := p.c.o.Log.Warn()
	if kind == fault.Internal || s.Status == invoice.Failed {
		event = p.c.o.Log.Error()
	}
	event.Str("document", id).Str("status", string(s.Status)).Str("kind", string(kind)).
		Str("code", fault.CodeOf(res.err)).Int("retry_count", s.RetryCount).Int64("retry_after", s.RetryAfter).
		Msg("the document was not written")
}

// countRest notes the documents that a dependency's failure left as they were.
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

// lag is the age of the oldest document that came, by its _ts; zero when none has one.
func (p *pass) lag() time.Duration {
	if p.oldest == 0 {
		return 0
	}
	return max(0, p.c.o.Now().Sub(time.Unix(p.oldest, 0)))
}
