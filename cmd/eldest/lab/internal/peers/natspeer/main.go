package natspeer

import (
	"errors"

	"github.com/nats-io/nats-server/v2/server"
)

// Main is a server with a configuration file, its only argument.
func Main(args []string) error {
	if len(args) != 1 {
		return errors.New("one argument is required: the configuration file")
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
	s.WaitForShutdown()
	return errors.New("the server has ended")
}
