package txn

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// outcome turns the error of a transaction that writes into one that says whether
// the write may have happened.
func outcome(err error) error {
	if err == nil || rpcerr.Definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
}
