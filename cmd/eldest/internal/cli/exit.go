package cli

import (
	"errors"
	"fmt"
)

// The exit codes that are promised in doc.go.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitLost   = 3
	ExitNobody = 4
	// ExitProvesNothing is of a run of which a part was invalid (chaos).
	ExitProvesNothing = 5
	// ExitRefused is of a transfer that was refused: the leader leads on.
	ExitRefused = 6
)

// CodedError carries the exit code of a command beside the reason. A nil err
// exits silently: the command has said everything already.
type CodedError struct {
	code int
	err  error
}

// Exit makes an error that ends the process with code. err is printed to
// stderr unless it is nil.
func Exit(code int, err error) error { return &CodedError{code: code, err: err} }

// Usagef is for what only RunE can find out: flags that contradict each
// other, a value out of range. It exits 2.
func Usagef(format string, args ...any) error {
	return &CodedError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func (e *CodedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *CodedError) Unwrap() error { return e.err }

// ErrInterrupted is the failure of a command that a signal ended before it was
// done.
var ErrInterrupted = errors.New("interrupted")

// ExitCode maps an error to its exit code and to the error worth printing.
// started tells whether the command's own code had begun: before that, every
// error is one of usage.
func ExitCode(err error, started bool) (int, error) {
	var coded *CodedError
	switch {
	case err == nil:
		return ExitOK, nil
	case errors.As(err, &coded):
		if coded.err == nil {
			return coded.code, nil
		}
		return coded.code, err
	case !started:
		return ExitUsage, err
	default:
		return ExitFailed, err
	}
}
