// Command eldest-peers measures leader elections of several systems. "eldest bench peers" builds and runs it:
// it is a program of its own because it contains the clients, and some of the servers, of all these systems,
// which eldest does not need for anything else.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/systems"
	"github.com/eldest-io/eldest/keeper"
)

func main() {
	keeper.Serve(connect.Kept) // in a keeper process this call does not return
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	root := lab.NewPeersRoot(systems.All(), systems.Mains)
	os.Exit(cli.Execute(ctx, root, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
