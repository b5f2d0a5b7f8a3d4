package crashtest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// scheduler lets one of several tasks run at a time. A task runs until its next call of a port, where it may lose its
// turn; the seed decides which one continues, and nothing else is random. So the same seed makes the same history.
type scheduler struct {
	w      *world
	rng    *rand.Rand
	tasks  []*task
	events chan event
}

// task is something that goes on by itself: a worker, the timer, the program that writes results.
type task struct {
	s      *scheduler
	resume chan struct{}
}

// event is a task that stopped: at a call, or for good.
type event struct {
	task *task
	over bool
}

func newScheduler(w *world, rng *rand.Rand) *scheduler {
	return &scheduler{w: w, rng: rng, events: make(chan event)}
}

type taskKey struct{}

// yield stops the task that a context belongs to until it is its turn again; without a scheduler it does nothing.
func yield(ctx context.Context) {
	if t, ok := ctx.Value(taskKey{}).(*task); ok {
		t.s.events <- event{task: t}
		<-t.resume
	}
}

// add makes a task; it does not begin before run.
func (s *scheduler) add(body func(ctx context.Context)) {
	t := &task{s: s, resume: make(chan struct{})}
	s.tasks = append(s.tasks, t)
	go func() {
		<-t.resume
		defer func() { s.events <- event{t, true} }()
		defer s.w.caught()
		body(context.WithValue(context.Background(), taskKey{}, t))
	}()
}

// run goes on until every task is over. Between two turns a little time passes, and sometimes more.
func (s *scheduler) run() {
	for len(s.tasks) > 0 {
		switch draw := s.rng.IntN(400); {
		case draw == 0:
			s.w.advance(6 * time.Minute)
		case draw < 12:
			s.w.advance(time.Duration(s.rng.IntN(40)) * time.Second)
		default:
			s.w.advance(time.Duration(s.rng.IntN(50)) * time.Millisecond)
		}
		t := s.tasks[s.rng.IntN(len(s.tasks))]
		t.resume <- struct{}{}
		if e := <-s.events; e.over {
			s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return t == e.task })
		}
	}
}
