package peer

import "context"

// Main is the main function of a server that is a Go library: "bench peers-server NAME ARGUMENT..." calls
// the one of that name, which blocks until ctx ends or it fails.
type Main func(ctx context.Context, args []string) error
