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
	// ExitProvesNothing is for a run of which a part was invalid (chaos).
	ExitProvesNothing = 5
	// ExitRefused is for a transfer that was refused: the leader still leads.
	ExitRefused = 6
)

// CodedError is an error with the exit code of a command. If err is nil nothing is printed: the
// command has written everything already.
type CodedError struct {
	code int
	err  error
}

// Exit makes an error that ends the process with code. err is printed to
// stderr unless it is nil.
func Exit(code int, err error) error { return &CodedError{code: code, err: err} }

// Usagef returns an error of usage that only RunE can find: flags that contradict each other, a value
// out of range. It exits 2.
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

// ExitCode maps an error to its exit code and to the error to print. started is true if the command's
// own code had begun: before that, every error is one of usage.
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
