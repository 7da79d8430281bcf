package cli

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

// ErrDeclined is returned by Confirm if the user does not want to go on.
var ErrDeclined = errors.New("nothing was removed")

// OnTerminal reports whether a user can be asked: not in a script, a pipe, or a job without a
// terminal, where a question would hang.
func OnTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Confirm asks on stderr whether to go on, and returns ErrDeclined unless the
// answer is yes. A signal ends the question.
func Confirm(cmd *cobra.Command) error {
	fmt.Fprint(cmd.ErrOrStderr(), "Go on? [y/N] ")
	line, ok := answer(cmd, func() string {
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		return strings.ToLower(strings.TrimSpace(line))
	})
	if !ok {
		fmt.Fprintln(cmd.ErrOrStderr())
	}
	if line != "y" && line != "yes" {
		return ErrDeclined
	}
	return nil
}

// AskPassword reads a password without showing it. A signal ends the question, and the terminal shows
// again what is typed: by default a signal would kill the process and leave a terminal that does not.
func AskPassword(cmd *cobra.Command, user string) (string, error) {
	fd := int(cmd.InOrStdin().(*os.File).Fd()) // see OnTerminal
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Password of %s: ", Printable(user))
	defer fmt.Fprintln(cmd.ErrOrStderr())
	var unread error
	password, ok := answer(cmd, func() (password []byte) {
		password, unread = term.ReadPassword(fd)
		return password
	})
	if !ok {
		return "", errors.Join(ErrInterrupted, term.Restore(fd, before))
	}
	return string(password), unread
}

// answer waits for the result of read; ok is false if a signal came first. Reading from a terminal
// cannot be interrupted: after a signal its goroutine ends with the process.
func answer[T any](cmd *cobra.Command, read func() T) (typed T, ok bool) {
	answered := make(chan T, 1)
	go func() { answered <- read() }()
	select {
	case typed = <-answered:
		return typed, true
	case <-cmd.Context().Done():
		return typed, false
	}
}
