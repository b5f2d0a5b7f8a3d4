package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"sqlwriter/internal/timer"
)

// errNoSwitch says why SQL cannot be switched off.
var errNoSwitch = errors.New("this stack cannot switch SQL off: SQL_CONNECTION names an instance without a port, or Azure SQL, which a proxy cannot stand in for")

// switchOff starts the outage of SQL. The caller calls on, which ends it. One outage at a time is possible.
func (s *stack) switchOff(ctx context.Context) (on func() error, err error) {
	if s.sql == nil {
		return nil, errNoSwitch
	}
	if !s.outage.TryLock() {
		return nil, errors.New("SQL is off already")
	}
	if err := s.sql.Off(ctx); err != nil {
		s.outage.Unlock()
		return nil, err
	}
	return func() error {
		defer s.outage.Unlock()
		return s.sql.On(context.WithoutCancel(ctx))
	}, nil
}

// serveControl serves what `demo` asks of the runner:
//
//	POST /sql-off?for=30s    SQL is off as soon as the answer begins, and on again when it ends or when the caller is gone
func (s *stack) serveControl(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.file.Control = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sql-off", s.serveSQLOff)
	s.control = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = s.control.Serve(listener) }() // until it is closed
	return nil
}

func (s *stack) serveSQLOff(w http.ResponseWriter, r *http.Request) {
	length, err := time.ParseDuration(r.FormValue("for"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	on, err := s.switchOff(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.out.Linef("SQL is off for %v (demo sql-off)", length)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // a caller that is gone ends the wait below
	_ = timer.Wait(r.Context(), length)
	if err := on(); err != nil {
		s.out.Linef("switch SQL on again: %v; a restart of the stack does it", err)
		return
	}
	s.out.Linef("SQL is on again")
}

// endControl ends an outage that is under way, and waits until SQL is on.
func (s *stack) endControl() error {
	if s.control == nil {
		return nil
	}
	err := s.control.Close()
	s.outage.Lock()
	defer s.outage.Unlock()
	return err
}
