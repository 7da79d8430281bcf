package txn

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Outcome is for other implementations of Ordering: it converts the error of a writing transaction
// to the error that Enter must return, which wraps eldest.ErrOutcomeUnknown unless it proves that
// nothing was written. nil stays nil.
func Outcome(err error) error { return outcome(err) }

// outcome wraps the error of a writing transaction in eldest.ErrOutcomeUnknown if the write may
// have been applied.
func outcome(err error) error {
	if err == nil || rpcerr.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
}
