package hooks

import (
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Set is what one who wants to know of an election has called. The zero Set has nothing
// called.
type Set struct {
	Session   lease.Hooks
	Candidate election.Hooks
	Observer  observe.Hooks
}

// Kind is what Tee can have told at once.
type Kind interface {
	lease.Hooks | election.Hooks | observe.Hooks | Set
}
