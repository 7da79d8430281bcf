package benchsite

import (
	"bufio"
	"context"
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
func command(r Role, args ...string) *exec.Cmd {
	return exec.Command(os.Args[0], append([]string{"benchsite-role", string(r)}, args...)...)
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "benchsite-role" {
		if err := play(Role(os.Args[2]), os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func play(r Role, args []string) error {
	switch r {
	case Member:
		return RunMember(context.Background(), os.Stdin, os.Stdout)
	case Janitor:
		return RunJanitor(args[0], os.Stdin)
	}
	// A worker that says what it was greeted with, and then what it is told, until it
	// is told to fail.
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
