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

// Act is the event of a scenario.
type Act string

// The acts.
const (
	// Resign makes the leader resign, and Withdraw makes the candidate behind it withdraw.
	Resign   Act = "resign"
	Withdraw Act = "withdraw"
	// Delete makes an operator delete the leader's key.
	Delete Act = "delete"
	// Crash makes the leader crash: its lease expires.
	Crash Act = "crash"
	// Cut partitions the leader for the rest of the scenario; its process goes on.
	Cut Act = "cut"
)

// Acts lists all acts.
var Acts = []Act{Resign, Withdraw, Delete, Crash, Cut}

// Names returns the names of the acts for a help text.
func Names() string {
	names := make([]string, len(Acts))
	for i, a := range Acts {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// ErrInvalid is returned by Check for a scenario that cannot be run.
var ErrInvalid = errors.New("invalid scenario")

// Config is a scenario. Election and Dial are required.
type Config struct {
	Election string
	// Candidates is the number of candidates; 0 means 3.
	Candidates int
	// Act is the event; "" means Resign.
	Act Act
	// TTL is the TTL of the leases. 0 means 3 s where a lease has to expire, and otherwise a TTL so
	// long that no lease has to be renewed.
	TTL time.Duration
	// Contender is the candidates' implementation: contender.Eldest (also "") or Concurrency.
	Contender string
	// Dial makes a client whose requests are in the lane of that name.
	Dial func(lane string) (*clientv3.Client, error)
}

// silent reports whether etcd notices an act only when the lease expires.
func (a Act) silent() bool { return a == Crash || a == Cut }

// Check sets the defaults and refuses an invalid scenario, before any request is sent.
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
		return fmt.Errorf("%w: unknown act %q; want one of %s", ErrInvalid, cfg.Act, Names())
	case cfg.Candidates < least || cfg.Candidates > 20:
		return fmt.Errorf("%w: --candidates %d: --act %s requires %d to 20", ErrInvalid, cfg.Candidates, cfg.Act, least)
	case cfg.Contender != contender.Eldest && cfg.Contender != contender.Concurrency:
		return fmt.Errorf("%w: unknown contender %q; want %s or %s", ErrInvalid, cfg.Contender, contender.Eldest, contender.Concurrency)
	case cfg.TTL < 0 || cfg.TTL > lease.MaxTTL:
		return fmt.Errorf("%w: --ttl %v: want more than 0s and at most %v", ErrInvalid, cfg.TTL, lease.MaxTTL)
	}
	return nil
}
