package cmd

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
)

// signals turns the signals that ask the process to end into the end of a
// context; the cause says by what. A second one ends the process at once
// (HX-1). SIGPIPE is caught so that a closed stdout is an error like any other
// and cleaning up happens.
type signals struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	ch     chan os.Signal
	done   chan struct{}
	// last runs before the process ends by a second signal.
	last atomic.Pointer[func()]
}

func catchSignals(parent context.Context) *signals {
	s := &signals{ch: make(chan os.Signal, 2), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	signal.Notify(s.ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go s.watch()
	return s
}

func (s *signals) watch() {
	select {
	case sig := <-s.ch:
		s.cancel(causeOf(sig))
	case <-s.done:
		return
	}
	select {
	case sig := <-s.ch:
		if f := s.last.Load(); f != nil {
			(*f)()
		}
		endBy(sig)
	case <-s.done:
	}
}

// endBy ends the process by the signal itself, as its parent expects.
func endBy(sig os.Signal) {
	signal.Reset(sig)
	syscall.Kill(os.Getpid(), sig.(syscall.Signal))
}

// atHardExit sets what a second signal does before the process ends.
func (s *signals) atHardExit(f func()) { s.last.Store(&f) }

func (s *signals) stop() {
	signal.Stop(s.ch)
	close(s.done)
	s.cancel(nil)
}

func causeOf(s os.Signal) error {
	switch s {
	case syscall.SIGTERM:
		return fault.ErrTerminated
	case syscall.SIGHUP:
		return fault.ErrHungUp
	default:
		return fault.ErrInterrupted
	}
}
