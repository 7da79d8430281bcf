package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runSignals sorts the signals that "eldest run" receives: those that end it, and those for the
// program.
type runSignals struct {
	// forward receives the signals that are to be passed on while a program runs, again a value when
	// a signal that ends the command is sent once more.
	forward chan syscall.Signal
	again   chan struct{}
	// program is true while a program runs.
	program atomic.Bool

	end   context.CancelCauseFunc
	mu    sync.Mutex
	first syscall.Signal // the first one that ends the command
	ended time.Time      // when it was received; zero before that
}

// signalError is the cause of a context that a signal has ended.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "ended by " + unix.SignalName(e.signal) }

// signalOf returns the signal that ended ctx; SIGTERM if it was not a signal.
func signalOf(ctx context.Context) syscall.Signal {
	if s, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
		return s.signal
	}
	return syscall.SIGTERM
}

// repeated is the time after the first signal in which the same signal is ignored: timeout(1), for
// one, signals a process and its group, and so sends it twice.
const repeated = 300 * time.Millisecond

// listenSignals starts to sort signals. The returned context ends with the first signal that ends the
// command, and its cause is a signalError; the end of ctx counts as SIGTERM. stop must be called.
func listenSignals(ctx context.Context) (ending context.Context, s *runSignals, stop func()) {
	ending, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s = &runSignals{forward: make(chan syscall.Signal, 16), again: make(chan struct{}, 1), end: end}
	others := []os.Signal{
		syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, unix.SIGWINCH,
		// A closed pipe must not end eldest, and the program with it.
		syscall.SIGPIPE,
	}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		others = append(others, syscall.SIGHUP)
	}
	// main ends the command's context with the same signals. The delay lets the signal arrive here
	// even if ctx ends first, so that the cause names it.
	detach := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(200 * time.Millisecond):
			end(signalError{syscall.SIGTERM})
		case <-ending.Done():
		}
	})
	// There are two channels, so that the others do not displace the signals that end the command.
	var sorting sync.WaitGroup
	var unlisten []func()
	for _, kind := range [][]os.Signal{{syscall.SIGINT, syscall.SIGTERM}, others} {
		sent := make(chan os.Signal, 16)
		signal.Notify(sent, kind...)
		unlisten = append(unlisten, func() { signal.Stop(sent); close(sent) })
		sorting.Go(func() {
			for sig := range sent {
				s.sort(sig.(syscall.Signal)) // on a Unix they all are
			}
		})
	}
	return ending, s, func() {
		detach()
		for _, stop := range unlisten {
			stop()
		}
		sorting.Wait()
		end(errors.New("the command is over"))
	}
}

func (s *runSignals) sort(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := s.program.Load()
	switch {
	case sig == syscall.SIGPIPE:
	case sig == syscall.SIGINT, sig == syscall.SIGTERM,
		!running && (sig == syscall.SIGHUP || sig == syscall.SIGQUIT):
		if s.ended.IsZero() {
			s.first, s.ended = sig, time.Now()
			s.end(signalError{sig})
			return
		}
		if time.Since(s.ended) < repeated && sig == s.first {
			return
		}
		select {
		case s.again <- struct{}{}:
		default: // the third signal ends the process without waiting for etcd
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			_ = unix.Kill(os.Getpid(), sig)
		}
	case running:
		select {
		case s.forward <- sig:
		default: // too many signals: this one is dropped
		}
	}
}
