package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// Config configures a Fence. Elections and Store are required.
type Config struct {
	// Elections are the elections whose leaders own the resource, most often one. Tokens of any
	// other election are refused as invalid, because they cannot be compared. With more than one
	// election the handler must check, with TokenFrom, in which one the token was won.
	Elections []string
	// Store remembers the newest tokens.
	Store Store
	// PassMissing admits requests without a token, for callers that are not leaders: readers, or
	// clients that are older than the fence. TokenFrom reports none there. By default such requests
	// are refused.
	PassMissing bool
	// Logger logs refused tokens and errors of the store, which callers do not receive. nil means
	// no logging.
	Logger *slog.Logger
}

// Fence admits requests by their tokens. Made by New; safe for concurrent use.
type Fence struct {
	cfg       Config
	elections map[string]bool
}

// New makes a fence. It sends nothing. The error wraps eldest.ErrInvalid.
func New(cfg Config) (*Fence, error) {
	f := &Fence{cfg: cfg, elections: make(map[string]bool)}
	invalid := func(election string, err error) (*Fence, error) {
		return nil, &eldest.OpError{Op: "new fence", Election: election, Err: err}
	}
	if len(cfg.Elections) == 0 {
		return invalid("", fmt.Errorf("%w: Config.Elections is empty", eldest.ErrInvalid))
	}
	for _, name := range cfg.Elections {
		if err := keys.Check(name); err != nil {
			return invalid(name, err)
		}
		f.elections[name] = true
	}
	if v := reflect.ValueOf(cfg.Store); cfg.Store == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return invalid("", fmt.Errorf("%w: Config.Store is nil", eldest.ErrInvalid))
	}
	if cfg.Logger == nil {
		f.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return f, nil
}

// Admit asks the store whether a token may pass, and makes the store remember it; it blocks as long
// as Store.Advance does. nil means only that no newer token had been seen at that moment: see "Not
// guaranteed" in the package comment.
//
// Errors: a *RefusedError for an older token; an eldest.OpError that wraps eldest.ErrInvalid for an
// invalid token, or one of an election that this fence does not have; any other eldest.OpError
// wraps the store's error, and then nothing is known about the token.
func (f *Fence) Admit(ctx context.Context, election string, token eldest.Token) error {
	if err := f.valid(ctx, election, token); err != nil {
		return &eldest.OpError{Op: "admit", Election: election, Err: err}
	}
	newest, err := f.cfg.Store.Advance(ctx, election, token)
	switch {
	case err != nil:
	case newest < token:
		err = fmt.Errorf("the store returned %d as the newest token after Advance with %d", newest, token)
	case newest > token:
		refused := &RefusedError{Election: election, Token: token, Newest: newest}
		f.cfg.Logger.Warn("an older token was refused", "election", election, "token", int64(token), "newest", int64(newest))
		return refused
	default:
		return nil
	}
	// If the caller has cancelled, the store has not failed.
	if ctx.Err() == nil {
		f.cfg.Logger.Error("the token store failed", "election", election, "token", int64(token), "error", err)
	}
	return &eldest.OpError{Op: "admit", Election: election, Err: fmt.Errorf("%w: %w", errStore, err)}
}

func (f *Fence) valid(ctx context.Context, election string, token eldest.Token) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	if err := check(election, token); err != nil {
		return err
	}
	if !f.elections[election] {
		return fmt.Errorf("%w: this fence is not configured for this election", eldest.ErrInvalid)
	}
	return nil
}

// errStore distinguishes a store that fails from what its error may wrap.
var errStore = errors.New("the token store failed")

// admitted is the token that a request was admitted with.
type admitted struct {
	election string
	token    eldest.Token
}

type admittedKey struct{}

// TokenFrom returns the token with which the request of this context was admitted, and the election
// in which it was won. ok is false if there is none: the request did not pass a fence, or passed
// one that admits requests without a token.
//
// Use it for the exact form of a fence: compare the token in the transaction that writes.
func TokenFrom(ctx context.Context) (election string, token eldest.Token, ok bool) {
	a, ok := ctx.Value(admittedKey{}).(admitted)
	return a.election, a.token, ok
}

// enter admits a request with the values of Header that it carries, and returns the
// context of its handler.
func (f *Fence) enter(ctx context.Context, values []string) (context.Context, error) {
	switch {
	case len(values) == 0 && f.cfg.PassMissing:
		return ctx, nil
	case len(values) == 0:
		return nil, errMissing
	case len(values) > 1:
		return nil, &eldest.OpError{Op: "parse token", Err: fmt.Errorf("%w: the request carries %d tokens, at most one is allowed", eldest.ErrInvalid, len(values))}
	}
	election, token, err := Parse(values[0])
	if err != nil {
		return nil, err
	}
	if err := f.Admit(ctx, election, token); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, admittedKey{}, admitted{election, token}), nil
}

// errMissing is the error of a request without a token.
var errMissing = fmt.Errorf("eldest: %w: the request carries no token: %s is missing", eldest.ErrInvalid, Header)
