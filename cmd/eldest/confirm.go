package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

var errDeclined = errors.New("nothing was removed")

// onTerminal reports whether somebody can be asked: not in a script, a pipe, or a
// job without a terminal, where a question would hang.
func onTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirm asks on stderr whether to go on, and returns errDeclined unless the
// answer is yes. A signal ends the question.
func confirm(cmd *cobra.Command) error {
	fmt.Fprint(cmd.ErrOrStderr(), "Go on? [y/N] ")
	answer := make(chan string, 1)
	// Nothing interrupts the reading of a terminal; after a signal this goroutine
	// ends with the process.
	go func() {
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		return errDeclined
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return errDeclined
	}
}

// askPassword reads a password without showing it. A signal ends the question, and
// the terminal shows again what is typed.
func askPassword(cmd *cobra.Command, user string) (string, error) {
	fd := int(cmd.InOrStdin().(*os.File).Fd()) // see onTerminal
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Password of %s: ", printable(user))
	defer fmt.Fprintln(cmd.ErrOrStderr())
	type typed struct {
		password []byte
		err      error
	}
	answer := make(chan typed, 1)
	go func() {
		password, err := term.ReadPassword(fd)
		answer <- typed{password, err}
	}()
	// The signal must be heeded here: by default it would kill the process and leave
	// a terminal that does not show what is typed.
	select {
	case a := <-answer:
		return string(a.password), a.err
	case <-cmd.Context().Done():
		return "", errors.Join(errInterrupted, term.Restore(fd, before))
	}
}
