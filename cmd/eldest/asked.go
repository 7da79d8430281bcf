package main

import (
	"context"
	"errors"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/transfer"
)

// transferHelp is for the help text of the commands that stand in elections.
const transferHelp = `
It takes part in transfers (eldest transfer), and can so be asked to step back in the
queue or to give leadership up; --no-transfer has it take no part. It is asked through a
key of its own under /eldest/ask/ELECTION/: a user whose role does not reach there stands
and leads all the same, and stderr says that it takes no part.
`

// addTransferFlag gives a command that stands the flag to take no part in transfers.
func addTransferFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("no-transfer", false, "take no part in transfers: nobody can ask this candidate to step back or to retire")
}

// takePart lets a candidate be asked until its session ends or stop is called, which
// waits. Close the session first: stop deletes the mailbox of a session that lives, and
// waits for etcd.
func takePart(cfg transfer.Config, notice func(string, ...any)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := transfer.Serve(ctx, cfg)
		if ctx.Err() == nil && cfg.Session.Err() == nil && !errors.Is(err, eldest.ErrClosed) {
			notice("takes no part in transfers: %s", connect.Because(err))
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
