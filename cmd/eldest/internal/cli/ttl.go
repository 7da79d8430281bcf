package cli

import (
	"time"

	"github.com/spf13/pflag"
)

// TTLVar adds the flag --ttl. 0s means the default, as a TTL of 0 does in the library.
func TTLVar(fl *pflag.FlagSet, to *time.Duration, byDefault time.Duration, usage string) {
	*to = byDefault
	fl.Var(&ttl{to, byDefault}, "ttl", usage)
}

type ttl struct {
	value     *time.Duration
	byDefault time.Duration
}

// Set sets the TTL that a user has given.
func (t *ttl) Set(given string) error {
	d, err := time.ParseDuration(given)
	if err != nil {
		return err
	}
	if d == 0 {
		d = t.byDefault
	}
	*t.value = d
	return nil
}

func (t *ttl) String() string {
	if t.value == nil || *t.value == 0 { // pflag asks a zero value; --help shows no default of 0
		return ""
	}
	return t.value.String()
}

// Type is what --help shows behind the flag's name.
func (t *ttl) Type() string { return "duration" }
