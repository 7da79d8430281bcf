// Command eldest elects leaders on etcd from a terminal; see doc.go.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab"
	"github.com/eldest-io/eldest/keeper"
)

func main() {
	// In a process that is a keeper, or a participant of the laboratory, these do not return.
	keeper.Serve(connect.Kept)
	lab.Serve()
	// The first SIGINT or SIGTERM ends the command's context, so that a leader can resign and a
	// cluster can be stopped. stop then restores the default action of the signals at once: a second
	// one ends the process immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)

	os.Exit(run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
