package txn

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Outcome is for queues of one's own (Queue): it returns the error of a transaction that
// writes as Enter must report it, wrapping eldest.ErrOutcomeUnknown unless it proves that
// nothing was written. nil stays nil.
func Outcome(err error) error { return outcome(err) }

// outcome turns the error of a transaction that writes into one that says whether
// the write may have happened.
func outcome(err error) error {
	if err == nil || rpcerr.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
}
