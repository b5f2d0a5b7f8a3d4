package ops

import "context"

// With is Samples.with.
func With(all Samples, s Sample) Samples { return all.with(s) }

// LookFeed is the row of the feed alone.
func LookFeed(ctx context.Context, o *Ops) DoctorRow { return o.lookFeed(ctx) }
