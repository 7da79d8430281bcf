package benchsite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds every wait of these tests.
const patience = time.Minute

// command makes processes of this binary, which TestMain turns into what they are for.
func command() *exec.Cmd { return exec.Command(os.Args[0], "worker") }

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// work is a worker that says what it was greeted with, and then what it is told, until it
// is told to fail.
func work() error {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line == "fail\n":
			return fmt.Errorf("told to fail")
		}
		fmt.Print(line)
	}
}
