package main

import (
	"errors"
	"fmt"
)

// The exit codes that are promised in doc.go.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitLost   = 3
	exitNobody = 4
	// exitProvesNothing is of a run of which a part was invalid (chaos).
	exitProvesNothing = 5
	// exitRefused is of a transfer that was refused: the leader leads on.
	exitRefused = 6
)

// exitError carries the exit code of a command beside the reason. A nil err
// exits silently: the command has said everything already.
type exitError struct {
	code int
	err  error
}

// exit makes an error that ends the process with code. err is printed to
// stderr unless it is nil.
func exit(code int, err error) error { return &exitError{code: code, err: err} }

// usageErrorf is for what only RunE can find out: flags that contradict each
// other, a value out of range. It exits 2.
func usageErrorf(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitCode maps an error to its exit code and to the error worth printing.
// started tells whether the command's own code had begun: before that, every
// error is one of usage.
func exitCode(err error, started bool) (int, error) {
	var coded *exitError
	switch {
	case err == nil:
		return exitOK, nil
	case errors.As(err, &coded):
		if coded.err == nil {
			return coded.code, nil
		}
		return coded.code, err
	case !started:
		return exitUsage, err
	default:
		return exitFailed, err
	}
}
