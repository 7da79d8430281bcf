//go:build !unix

package bench

import (
	"errors"
	"os"
)

// suspend is not supported here.
func suspend(*os.Process, bool) error { return errors.ErrUnsupported }
