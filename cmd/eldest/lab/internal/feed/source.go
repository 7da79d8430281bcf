package feed

import (
	"context"
	"errors"
	"fmt"
)

// ErrRefused is returned for an action that cannot be done as asked: its text says what to do.
var ErrRefused = errors.New("not done")

// Refused returns an error that wraps ErrRefused. The format is that of fmt.Errorf.
func Refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// Source is what the page shows. Its methods may be called concurrently.
type Source interface {
	Info() Info
	Log() *Log
	// Do does one action, and adds it to the log, also if it fails, but not if Action.Check fails. It
	// blocks until the action's effect was seen, or ctx ends. The error wraps ErrRefused if nothing
	// was done because the action makes no sense: of an unknown participant, for example.
	Do(ctx context.Context, a Action) error
	// Play begins anew and does the steps of a scenario in the background; a later Play ends it. The
	// error wraps ErrRefused if the scenario is invalid, also by Scenario.Check, or the source plays none.
	Play(ctx context.Context, s Scenario) error
	// Done returns what was done since the beginning, or since the last Play, as a scenario.
	Done() Scenario
}
