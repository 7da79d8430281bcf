//go:build !unix

package offspring

import "errors"

// Suspends says that processes can be suspended here.
const Suspends = false

// Suspend is not to be had here.
func (p *Process) Suspend() error { return errors.ErrUnsupported }

// Resume is not to be had here.
func (p *Process) Resume() error { return errors.ErrUnsupported }
