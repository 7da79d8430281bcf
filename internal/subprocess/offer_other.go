//go:build !unix

package subprocess

import (
	"errors"
	"os"
)

// Offer is not supported here.
func Offer(*os.File, []byte) error { return errors.ErrUnsupported }
