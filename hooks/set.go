package hooks

import (
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Set has the hooks that monitor an election. The zero Set calls nothing.
type Set struct {
	Session   lease.Hooks
	Candidate election.Hooks
	Observer  observe.Hooks
}

// Kind is a type of hooks that Tee combines.
type Kind interface {
	lease.Hooks | election.Hooks | observe.Hooks | Set
}
