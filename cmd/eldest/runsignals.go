//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runSignals sorts the signals that "eldest run" gets: those that end it, and those that
// are the program's.
type runSignals struct {
	// forward has what is to be passed on while a program runs, again a value when
	// one that ends is sent once more.
	forward chan syscall.Signal
	again   chan struct{}
	// program says that one runs.
	program atomic.Bool
	// ends has the signals that end the command, others the rest: what comes in a flood
	// must not crowd these out.
	ends, others chan os.Signal
	done         chan struct{}
	ended        time.Time // when the first signal came that ends the command
}

// signalError is the cause of a context that a signal has ended.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return "ended by " + unix.SignalName(e.signal) }

// signalOf is the signal that ended ctx; SIGTERM where it was none.
func signalOf(ctx context.Context) syscall.Signal {
	if s, ok := context.Cause(ctx).(signalError); ok { //nolint:errorlint // set here, never wrapped
		return s.signal
	}
	return syscall.SIGTERM
}

// repeated is how soon after the first one the same signal means nothing more: who signals
// a process and its group, as timeout(1) does, sends it twice.
const repeated = 300 * time.Millisecond

// listenSignals starts to sort. The returned context ends with the first signal that ends
// the command, its cause is a signalError; ctx's end counts as SIGTERM. stop must be called.
func listenSignals(ctx context.Context) (ending context.Context, s *runSignals, stop func()) {
	s = &runSignals{
		forward: make(chan syscall.Signal, 16), again: make(chan struct{}, 1),
		ends: make(chan os.Signal, 16), others: make(chan os.Signal, 16), done: make(chan struct{}),
	}
	ending, end := context.WithCancelCause(context.WithoutCancel(ctx))
	others := []os.Signal{
		syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, unix.SIGWINCH,
		// A reader that went away is no reason to die and take the program along.
		syscall.SIGPIPE,
	}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		others = append(others, syscall.SIGHUP)
	}
	signal.Notify(s.ends, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(s.others, others...)
	// main ends the command's context with the same signals; who was first is of no
	// interest, but which signal it was is.
	detach := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(200 * time.Millisecond):
			end(signalError{syscall.SIGTERM})
		case <-ending.Done():
		}
	})
	go func() {
		defer close(s.done)
		for ends, others := s.ends, s.others; ends != nil || others != nil; {
			var sig os.Signal
			var more bool
			select {
			case sig, more = <-ends:
				if !more {
					ends = nil
				}
			case sig, more = <-others:
				if !more {
					others = nil
				}
			}
			if more {
				s.sort(ending, sig.(syscall.Signal), end) // on a Unix they all are
			}
		}
	}()
	return ending, s, func() {
		detach()
		signal.Stop(s.ends)
		signal.Stop(s.others)
		close(s.ends)
		close(s.others)
		<-s.done
		end(fmt.Errorf("the command is over"))
	}
}

func (s *runSignals) sort(ending context.Context, sig syscall.Signal, end context.CancelCauseFunc) {
	running := s.program.Load()
	switch {
	case sig == syscall.SIGPIPE:
	case sig == syscall.SIGINT, sig == syscall.SIGTERM,
		!running && (sig == syscall.SIGHUP || sig == syscall.SIGQUIT):
		if ending.Err() == nil {
			s.ended = time.Now()
			end(signalError{sig})
			return
		}
		if time.Since(s.ended) < repeated && sig == signalOf(ending) {
			return
		}
		select {
		case s.again <- struct{}{}:
		default: // the third one: nobody has to wait for etcd, either
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			_ = unix.Kill(os.Getpid(), sig)
		}
	case running:
		select {
		case s.forward <- sig:
		default: // more than anybody can mean
		}
	}
}
