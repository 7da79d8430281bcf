//go:build !linux

package lab

import (
	"errors"

	"github.com/spf13/cobra"
)

// newChaosCmd says why there is none here: the histories of processes are compared by a
// clock that all of them share and that nobody sets, and whether a process stands still
// is asked of the kernel.
func newChaosCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "chaos",
		Short: "Try elections with faults, and judge what happened (Linux only)",
		RunE:  func(*cobra.Command, []string) error { return errors.New("chaos needs Linux") },
	}
}
