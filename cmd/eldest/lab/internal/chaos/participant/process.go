package participant

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// Process is the process of a participant, for the one that has started it.
type Process struct {
	*offspring.Process
	// Up is closed when the participant has reported that it is up, after the call for that line.
	Up    chan struct{}
	who   string
	stdin io.Writer
}

// role, as the first argument, makes a program a participant.
const role = "chaos-participant"

// Launch starts a participant and returns at once. The main function of the executable calls Serve and
// keeper.Serve. line is called with each line that the participant writes, and then exited, once, as
// Spawner.Launch does.
func Launch(s *offspring.Spawner, executable string, cfg Config, line func(Line), exited func(*offspring.Process)) (*Process, error) {
	cmd := exec.Command(executable, role)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{Up: make(chan struct{}), who: cfg.Who, stdin: stdin}
	p.Process, err = s.Launch(cmd, func(text []byte) {
		var l Line
		if json.Unmarshal(text, &l) != nil {
			return // a killed process may leave half a line; after a panic, the end of the process is reported
		}
		if line(l); l.Up {
			close(p.Up)
		}
	}, exited)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cfg.Who, err)
	}
	_ = json.NewEncoder(stdin).Encode(cfg) // if the process has ended, exited reports why
	return p, nil
}

// Order sends an order. The error is that of a process that has ended.
func (p *Process) Order(o Order) error {
	if err := json.NewEncoder(p.stdin).Encode(o); err != nil {
		return fmt.Errorf("send an order to %s: %w", p.who, err)
	}
	return nil
}

// Serve runs a participant and ends the process, if it was started as one; else it returns at once.
func Serve() {
	if len(os.Args) < 2 || os.Args[1] != role {
		return
	}
	if err := Run(os.Stdin, os.Stdout); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}
