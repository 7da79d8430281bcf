//go:build !linux

package benchsite

import "errors"

// inspect is not supported on this system.
func inspect(string) (filesystem, error) { return filesystem{}, errors.ErrUnsupported }
