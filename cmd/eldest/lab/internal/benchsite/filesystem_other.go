//go:build !linux

package benchsite

import "errors"

// inspect knows nothing here.
func inspect(string) (filesystem, error) { return filesystem{}, errors.ErrUnsupported }
