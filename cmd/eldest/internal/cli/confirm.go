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

// ErrDeclined is the answer of a person who does not want to go on.
var ErrDeclined = errors.New("nothing was removed")

// OnTerminal reports whether somebody can be asked: not in a script, a pipe, or a
// job without a terminal, where a question would hang.
func OnTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Confirm asks on stderr whether to go on, and returns errDeclined unless the
// answer is yes. A signal ends the question.
func Confirm(cmd *cobra.Command) error {
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
		return ErrDeclined
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return ErrDeclined
	}
}

// AskPassword reads a password without showing it. A signal ends the question, and
// the terminal shows again what is typed.
func AskPassword(cmd *cobra.Command, user string) (string, error) {
	fd := int(cmd.InOrStdin().(*os.File).Fd()) // see onTerminal
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Password of %s: ", Printable(user))
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
		return "", errors.Join(ErrInterrupted, term.Restore(fd, before))
	}
}
