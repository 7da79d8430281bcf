package natspeer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readiness limits how long a server may take to accept clients.
const readiness = 30 * time.Second

// Main is a server with a configuration file, its only argument. It blocks until ctx ends.
func Main(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("nats: one argument is required: the configuration file")
	}
	opts, err := server.ProcessConfigFile(args[0])
	if err != nil {
		return err
	}
	opts.NoSigs = true // signals are those of this program
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(readiness) {
		return fmt.Errorf("nats: not ready after %s", readiness)
	}
	<-ctx.Done()
	return nil
}
