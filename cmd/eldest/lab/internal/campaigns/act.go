package campaigns

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// Act is what happens.
type Act string

// The acts.
const (
	// Resign has the leader leave, and Withdraw the one who waits behind it.
	Resign   Act = "resign"
	Withdraw Act = "withdraw"
	// Delete has an operator remove the leader's key.
	Delete Act = "delete"
	// Crash has the leader vanish without a word: its lease runs out.
	Crash Act = "crash"
	// Cut has the leader's network swallow everything for as long; it lives on.
	Cut Act = "cut"
)

// Acts are all there are.
var Acts = []Act{Resign, Withdraw, Delete, Crash, Cut}

// Names lists the acts for a help text.
func Names() string {
	names := make([]string, len(Acts))
	for i, a := range Acts {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// ErrInvalid is returned by Check for a scene that cannot be played.
var ErrInvalid = errors.New("invalid scene")

// Config is a scene. Election and Dial are required.
type Config struct {
	Election string
	// Candidates is how many stand; 0 means 3.
	Candidates int
	// Act is what happens; "" means Resign.
	Act Act
	// TTL is that of the leases; 0 means as long that nobody has to renew one, and 3 s where
	// one has to run out.
	TTL time.Duration
	// Contender is whose candidates they are; "" means Eldest, and there is contender.Concurrency.
	Contender string
	// Dial makes a client whose requests are in the lane of that name.
	Dial func(lane string) (*clientv3.Client, error)
}

// silent reports whether an act is one that etcd has to find out by itself.
func (a Act) silent() bool { return a == Crash || a == Cut }

// Check fills in what is zero and refuses what cannot be played, before anything is sent.
func (cfg *Config) Check() error {
	if cfg.Act == "" {
		cfg.Act = Resign
	}
	if cfg.Candidates == 0 {
		cfg.Candidates = 3
	}
	if cfg.Contender == "" {
		cfg.Contender = contender.Eldest
	}
	if cfg.TTL == 0 {
		cfg.TTL = time.Minute
		if cfg.Act.silent() {
			cfg.TTL = 3 * time.Second
		}
	}
	least := 2
	if cfg.Act == Withdraw {
		least = 3
	}
	switch err := keys.Check(cfg.Election); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	case !slices.Contains(Acts, cfg.Act):
		return fmt.Errorf("%w: there is no act %q; there are %s", ErrInvalid, cfg.Act, Names())
	case cfg.Candidates < least || cfg.Candidates > 20:
		return fmt.Errorf("%w: %d candidates: %s takes %d to 20", ErrInvalid, cfg.Candidates, cfg.Act, least)
	case cfg.Contender != contender.Eldest && cfg.Contender != contender.Concurrency:
		return fmt.Errorf("%w: there is no contender %q; there are %s and %s", ErrInvalid, cfg.Contender, contender.Eldest, contender.Concurrency)
	case cfg.TTL < 0 || cfg.TTL > lease.MaxTTL:
		return fmt.Errorf("%w: a TTL of %v: want more than 0s and at most %v", ErrInvalid, cfg.TTL, lease.MaxTTL)
	}
	return nil
}
