package ui

import (
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// pause asks before the flow is paused.
func (v *visit) pause() (content, error) {
	status, err := do(v, opsapi.StatusGet, ops.StatusQuery{})
	if err != nil {
		return content{}, err
	}
	p := action{
		About: "Now it is " + status.Flow.Says + ".", To: v.Path, BackName: "Overview", Why: v.Form.Get("why"),
		Button: "Pause the flow", Danger: true,
		Does: "Nothing is sent to SQL until somebody resumes. All instances stop within five seconds; requests under way are finished.",
		Not: []string{
			"No document is lost, and none spends a retry.", "The pause does not end by itself.",
			"Results may still be put into the container: they wait.",
		},
	}
	return content{Title: "Pause the flow", Command: `sqlwriterctl flow pause --why "..."`, Main: p}, nil
}

func (v *visit) doPause() (string, error) {
	_, err := do(v, opsapi.FlowPause, ops.FlowRequest{Why: v.Form.Get("why")})
	return "", err
}

// stopped describes the flow while nothing is written; empty while it runs, or when it is not known.
func (v *visit) stopped() string {
	status, err := do(v, opsapi.StatusGet, ops.StatusQuery{})
	if f := status.Flow; err == nil && (f.State == breaker.PausedFlow || f.State == breaker.StoppedFlow) {
		return v.site.says(f.Says)
	}
	return ""
}

// resume asks before the flow is resumed.
func (v *visit) resume() (content, error) {
	status, err := do(v, opsapi.StatusGet, ops.StatusQuery{})
	if err != nil {
		return content{}, err
	}
	p := action{
		About: "Now it is " + status.Flow.Says + ".", To: v.Path, BackName: "Overview", Why: v.Form.Get("why"),
		Button: "Resume the flow",
		Does:   "The next request is a probe, at once. When SQL commits it, work goes on with 1, 5, 25, then 100 documents a request.",
		Not: []string{
			"A database that went back, or another one, is not accepted: that needs a decision, on the command line (docs/runbook.md, The database went back).",
		},
	}
	return content{Title: "Resume the flow", Command: `sqlwriterctl flow resume --why "..."`, Main: p}, nil
}

func (v *visit) doResume() (string, error) {
	_, err := do(v, opsapi.FlowResume, ops.ResumeFlow{Why: v.Form.Get("why")})
	return "", err
}
