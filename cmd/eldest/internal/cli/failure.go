package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// Failure is why a command failed: with --json the object on the last line of stderr.
type Failure struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exit_code"`
	Advice   string `json:"advice,omitempty"` // what the user can do
}

// FailureOf describes the failure of a command by what ExitCode returns, an error that is not nil.
func FailureOf(cmd *cobra.Command, code int, err error) Failure {
	f := Failure{Error: err.Error(), ExitCode: code}
	if advised, ok := errors.AsType[*adviceError](err); ok {
		f.Advice = advised.advice
		f.Error = strings.TrimSuffix(f.Error, "; "+f.Advice)
	} else if code == ExitUsage {
		f.Advice = helpAdvice(cmd)
	}
	return f
}

func helpAdvice(cmd *cobra.Command) string {
	return fmt.Sprintf("Run '%s --help' for usage.", cmd.CommandPath())
}

// adviceError is an error with what the user can do about it.
type adviceError struct {
	err    error
	advice string
}

// Advise adds to an error what the user can do about it.
func Advise(err error, advice string) error { return &adviceError{err, advice} }

func (e *adviceError) Error() string { return e.err.Error() + "; " + e.advice }

func (e *adviceError) Unwrap() error { return e.err }

// failsInJSON reports whether a failure is written as JSON: --json was given, also behind the word at
// which the parsing of args failed. The value of --json may be a file.
func failsInJSON(cmd *cobra.Command, args []string) bool {
	if flag := cmd.Flag("json"); flag != nil && flag.Changed {
		return flag.Value.String() != "false"
	}
	if dash := slices.Index(args, "--"); dash >= 0 {
		args = args[:dash]
	}
	return slices.Contains(args, "--json")
}

// JSONLine renders one value on a line of its own, without escaping for HTML. Characters that control
// a terminal are escaped, as JSON allows: programs read the same text, and people print it, too.
func JSONLine(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return plain.JSON(b.String())
}
