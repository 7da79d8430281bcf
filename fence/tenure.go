package fence

import (
	"fmt"
	"reflect"

	"github.com/eldest-io/eldest"
)

// Tenure is what the client side needs of a leadership; *election.Leadership is one. Its
// methods must be safe for concurrent use and must not block.
type Tenure interface {
	// Election is the election's name.
	Election() string
	// Token names the tenure; it never changes.
	Token() eldest.Token
	// Err returns nil during the tenure, then why it ended.
	Err() error
}

// stamp returns the value of Header for a tenure that has not ended here, else why
// nothing is sent.
func stamp(t Tenure) (string, error) {
	if v := reflect.ValueOf(t); t == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", &eldest.OpError{Op: "fenced request", Err: fmt.Errorf("%w: the tenure is nil", eldest.ErrInvalid)}
	}
	if err := ended(t); err != nil {
		return "", err
	}
	return Format(t.Election(), t.Token())
}

// ended returns why a tenure is over, or nil.
func ended(t Tenure) error {
	if err := t.Err(); err != nil {
		return &eldest.OpError{Op: "fenced request", Election: t.Election(), Err: fmt.Errorf("%w: %w", eldest.ErrNotLeading, err)}
	}
	return nil
}
