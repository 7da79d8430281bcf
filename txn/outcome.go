package txn

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Outcome converts the error of a writing transaction, for all implementations of Ordering: the
// result wraps eldest.ErrOutcomeUnknown unless the error proves that nothing was written. nil stays
// nil.
func Outcome(err error) error {
	if err == nil || rpcerr.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
}
