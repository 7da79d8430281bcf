// Command eldest elects leaders on etcd from a terminal; see doc.go.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/keeper"
)

func main() {
	keeper.Serve(connect.Kept) // a process that is to be a keeper does nothing else
	// The first SIGINT or SIGTERM ends the command's context, so that a leader
	// can resign and a cluster can be taken down. stop gives the signals their
	// default meaning back at that very moment: a second one ends the process
	// at once, for those who cannot wait.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	os.Exit(run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
