package funchost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"
)

// Host is one running host. It is made by New and used once.
type Host struct {
	options    Options
	root       string // absolute
	clock      Clock
	config     hostConfig
	functions  []*function
	events     *eventLog
	consoleMu  sync.Mutex
	dispatcher *dispatcher
	server     *http.Server
	address    string

	listening     context.Context // ends when triggers must not take anything new
	stopListening context.CancelFunc
	life          context.Context // ends when everything must end
	endLife       context.CancelFunc
	listeners     sync.WaitGroup
	tasks         sync.WaitGroup

	openCosmos  func(context.Context, *cosmosTrigger) (changeSource, leaseStore, func(), error)
	timerStatus func() (timerStore, error)

	openServiceBus func(*serviceBusTrigger) (messageReceiver, error)

	started  chan struct{}
	stopOnce sync.Once
	stopping chan struct{}
	cause    error
	done     chan struct{}
}

// ErrNotStarted is returned by Wait and Stop of a host that never started.
var ErrNotStarted = errors.New("the host has not been started")

// New makes a host. Nothing is read or started yet.
func New(options Options) *Host {
	options = options.withDefaults()
	h := &Host{
		options: options, clock: options.Clock,
		events:  newEventLog(options.Clock.Now, options.OnEvent),
		started: make(chan struct{}), stopping: make(chan struct{}), done: make(chan struct{}),
		openCosmos: func(ctx context.Context, t *cosmosTrigger) (changeSource, leaseStore, func(), error) {
			feed, store, err := openCosmos(ctx, t)
			if err != nil {
				return nil, nil, nil, err
			}
			return feed, store, store.close, nil
		},
		openServiceBus: openServiceBus,
	}
	h.timerStatus = sync.OnceValues(func() (timerStore, error) {
		return openTimerStore(options.Settings, options.HostID)
	})
	return h
}

// Run starts a host and returns when it has stopped: nil after ctx ended, ErrHandlerGaveUp after too many errors of the
// handler, or the reason why it could not start.
func Run(ctx context.Context, options Options) error {
	h := New(options)
	if err := h.Start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return h.Stop()
	case <-h.done:
		return h.Wait()
	}
}

// Start reads the script root and starts the handler, the triggers and the HTTP server. It returns as soon as the host
// listens; Ready is closed when the handler does too. A function that cannot be indexed does not keep the others from
// running, as in the host: it is an event (FunctionRefused) and a line in the log. Errors: host.json or the executable
// is not as the host needs it, the address is taken, the process cannot be started.
//
// ctx bounds the start only; the host runs until Stop.
func (h *Host) Start(ctx context.Context) error {
	root, err := filepath.Abs(h.options.ScriptRoot)
	if err != nil {
		return fmt.Errorf("script root: %w", err)
	}
	h.root = root
	if h.config, err = readHostConfig(root, h.options.Settings); err != nil {
		return err
	}
	if err := h.indexFunctions(); err != nil {
		return err
	}
	if h.dispatcher, err = newDispatcher(ctx, h); err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", h.options.Listen)
	if err != nil {
		return fmt.Errorf("host address: %w", err)
	}
	h.address = listener.Addr().String()
	base := context.WithoutCancel(ctx)
	h.listening, h.stopListening = context.WithCancel(base)
	h.life, h.endLife = context.WithCancel(base)
	if len(h.functions) > 0 { // without functions the host does not start the handler either
		if err := h.dispatcher.start(h.life); err != nil { //nolint:contextcheck // the handler lives as long as the host, not as long as Start
			h.endLife()
			h.stopListening()
			return errors.Join(err, listener.Close())
		}
	}
	h.server = &http.Server{Handler: newRouter(h), ReadHeaderTimeout: time.Minute, ConnContext: withHead}
	h.tasks.Go(func() {
		if err := h.server.Serve(headListener{listener}); !errors.Is(err, http.ErrServerClosed) {
			h.shutdown(fmt.Errorf("host server: %w", err))
		}
	})
	for _, f := range h.functions {
		h.listen(f)
	}
	close(h.started)
	h.event(Event{Kind: HostStarted, Text: h.address})
	go h.teardown() //nolint:contextcheck // the end of the host is not bound to its start
	return nil
}

func (h *Host) indexFunctions() error {
	names, err := readFunctionDirs(h.root)
	if err != nil {
		return err
	}
	x := indexer{root: h.root, settings: h.options.Settings, host: h.config, tune: h.options.Tune}
	for _, name := range names {
		f, err := x.index(name)
		switch {
		case err != nil:
			h.event(Event{Kind: FunctionRefused, Function: name, Err: err})
			continue
		case f.disabled:
			h.event(Event{Kind: FunctionDisabled, Function: name})
		default:
			h.event(Event{Kind: FunctionIndexed, Function: name})
		}
		h.functions = append(h.functions, f)
	}
	if len(h.functions) == 0 {
		h.event(
			Event{
				Kind: NoFunctions,
				Text: "0 functions found (Custom): no direct child folder of the script root gives a function",
			})
	}
	return nil
}

// listen starts the listener of a function, if its trigger has one.
func (h *Host) listen(f *function) {
	switch {
	case f.disabled:
	case f.cosmos != nil:
		h.listeners.Go(func() { h.keepListening(f, h.listenCosmos) })
	case f.timer != nil:
		h.listeners.Go(func() { h.keepListening(f, h.listenTimer) })
	case f.serviceBus != nil:
		h.listeners.Go(func() { h.keepListening(f, h.listenServiceBus) })
	}
}

// keepListening runs a listener; one that can't start is tried again after 2 s, doubling to 2 min
// (FunctionListener.cs).
func (h *Host) keepListening(f *function, listen func(context.Context, *function) error) {
	pauses := newBackoff(2*time.Second, 2*time.Minute)
	for {
		err := listen(h.listening, f)
		if err == nil || h.listening.Err() != nil {
			return
		}
		pause := pauses.next()
		h.event(Event{Kind: ListenerFailed, Function: f.name, Err: err, Delay: pause})
		if !h.clock.Sleep(h.listening, pause, waitListener) {
			return
		}
	}
}

func (h *Host) listenCosmos(ctx context.Context, f *function) error {
	source, store, closeStore, err := h.openCosmos(ctx, f.cosmos)
	if err != nil {
		return err
	}
	defer closeStore()
	l := newCosmosListener(h, f, source, store)
	if err := l.initialize(ctx); err != nil {
		return err
	}
	l.event(Event{Kind: ListenerStarted})
	l.run(ctx)
	return nil
}

// Address is the host's own address, host:port, once Start has returned.
func (h *Host) Address() string { return h.address }

// HandlerURL is the address that the handler must listen on.
func (h *Host) HandlerURL() string { return h.dispatcher.base }

// HandlerPid is the process id of the handler's current run.
func (h *Host) HandlerPid() int { return h.dispatcher.pid() }

// Ready is closed when the handler answers; after a restart of the handler it is another channel.
func (h *Host) Ready() <-chan struct{} {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	return h.dispatcher.ready
}

// Done is closed when the host has stopped.
func (h *Host) Done() <-chan struct{} { return h.done }

// Wait returns when the host has stopped: nil after Stop, otherwise the reason.
func (h *Host) Wait() error {
	select {
	case <-h.started:
	default:
		return ErrNotStarted
	}
	<-h.done
	return h.cause
}

// Stop stops the triggers, waits up to Tune.StopTimeout for what is running, and kills the handler with SIGKILL: there
// is no gentler way (docs/facts.md F23). A batch that was being worked on is not checkpointed and comes again.
func (h *Host) Stop() error {
	h.shutdown(nil)
	return h.Wait()
}

// shutdown begins the end; the first reason counts.
func (h *Host) shutdown(cause error) {
	h.stopOnce.Do(func() {
		h.cause = cause
		close(h.stopping)
	})
}

// teardown waits for the end and brings it about. The host's own context may be over by then, so it uses none.
func (h *Host) teardown() {
	defer close(h.done)
	<-h.stopping
	h.stopListening()
	quiet := make(chan struct{})
	go func() {
		h.listeners.Wait()
		_ = h.server.Shutdown(h.life) // ends early with life
		close(quiet)
	}()
	limit := time.NewTimer(h.options.Tune.StopTimeout)
	defer limit.Stop()
	select {
	case <-quiet:
	case <-limit.C:
	}
	h.dispatcher.stop()
	h.endLife()
	<-quiet
	// With its life the invocations of HTTP callers end; let their handlers finish before the count of tasks is waited
	// for.
	closing, cancel := context.WithTimeout(context.WithoutCancel(h.life), h.options.Tune.StopTimeout)
	defer cancel()
	_ = h.server.Shutdown(closing)
	_ = h.server.Close()
	h.tasks.Wait()
	h.dispatcher.tasks.Wait()
	h.event(Event{Kind: HostStopped, Err: h.cause})
}

// event records what happened and writes a line for it.
func (h *Host) event(e Event) {
	h.events.add(e)
	log := h.options.Log.Info()
	switch e.Kind {
	case FunctionRefused, ListenerFailed, InvocationFailed, InvocationTimeout, HandlerGaveUp,
		NoFunctions, RetriesExhausted:
		log = h.options.Log.Error()
	case FeedError:
		log = h.options.Log.WithLevel(feedErrorLevel(e.Err))
	case LeaseLost, LeaseError, Retry, TimerStatusFailed, HandlerRestarting,
		ReceiveFailed, MessageAbandoned, MessageLeft, MessageLockLost, RenewFailed, SettleFailed:
		log = h.options.Log.Warn()
	case InvocationStarted, InvocationSuccess, Checkpoint, UserLog, MessageCompleted, MessageLockRenewed:
		log = h.options.Log.Debug()
	default:
	}
	category, message := "Host", string(e.Kind)
	if e.Kind == FeedError { // the extension's own words: operators look for them
		category, message = "Host.Triggers.CosmosDB", e.Text
		e.Text = ""
	}
	log = log.Str("category", category)
	for _, field := range [][2]string{
		{"function", e.Function},
		{"invocation_id", e.InvocationID},
		{"range", e.Range},
		{"message_id", e.MessageID},
		{"text", e.Text},
	} {
		if field[1] != "" && e.Kind != UserLog { // a user's line has been written where it came in
			log = log.Str(field[0], field[1])
		}
	}
	if e.Err != nil {
		log = log.Err(e.Err)
	}
	if e.DeliveryCount > 0 {
		log = log.Int("delivery_count", e.DeliveryCount)
	}
	if e.Kind == HandlerExited {
		log = log.Int("exit_code", e.ExitCode)
	}
	log.Msg(message)
}
