package lease

import (
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/keeper"
)

// Config says how a session gets and keeps its lease. Only Lease is required.
// It is copied by Open and Resume; changing it afterwards has no effect.
type Config struct {
	// Lease is the RPC surface: a *clientv3.Client, a namespaced or a fake one.
	// Used are Grant, KeepAliveOnce and Revoke (and see Majority), each with a context that ends,
	// and the keep-alive stream of a *clientv3.Client whose Lease nobody has replaced.
	Lease clientv3.Lease

	// Majority confirms that a renewal was answered by etcd's leader and not by one
	// that had been replaced without knowing (see the package comment). nil means
	// Lease, if it lists etcd's members as a *clientv3.Client does. One that does not, such
	// as a namespaced one or a client put together without a Cluster, is refused without a
	// Majority: give the client that it is made of, or Unconfirmed{}. Renewals
	// whose replies carry no Raft term (gRPC proxies) count as they are.
	Majority Majority

	// TTL is the wanted time to live: 0 means DefaultTTL; parts of a second round
	// up; negative ones and those over MaxTTL are refused. The server may grant
	// more: by default it grants at least 2 s (1.5 election timeouts, rounded
	// up). What it granted is in Session.TTL, and only that is used.
	TTL time.Duration

	// Margin is subtracted from the granted TTL (see the package comment). 0
	// means the larger of TTL/10 and MinMargin.
	// Invariant: 0 <= Margin < TTL.
	Margin time.Duration

	// Clock is read for every deadline. nil means Boot(). It is read under the session's
	// lock: it must not call the session.
	Clock Clock

	// Renewal gives the rhythm for a granted TTL; it is asked again when the
	// server changes the TTL. nil means DefaultRenewal.
	Renewal func(granted time.Duration) Renewal

	// Liveness, if not nil, must be beating for the session to be opened and renewed: the
	// application's own sign of life. While it is silent, attempts fail with
	// eldest.ErrUnresponsive as if etcd had refused them; nothing is sent.
	Liveness *Liveness

	// Shared says that others may renew the lease as well: a session that is lost then
	// leaves it alone, to live or to expire, where it would else have it revoked. Close
	// of one that lives still revokes.
	Shared bool

	// Keeper, if not nil, revokes the lease when this process has died: then nobody has to
	// wait until it expires. It must reach the same etcd. Not for a lease that is Shared, and not
	// for one that an heir of this process is to Resume after its death: while etcd does not
	// answer, the keeper tries for one TTL.
	Keeper *keeper.Keeper

	// Heartbeat, if not zero, lets a successor lead sooner than the lease expires. Not for a lease
	// that is Shared.
	Heartbeat Heartbeat

	// Backoff gives the pause after the n-th failed attempt in a row, from 0, of
	// granting, renewing and revoking. nil means doubling from 25 ms to 1 s with
	// jitter. A pause is 5 ms at least, whatever the function returns.
	Backoff func(attempt int) time.Duration

	// Hooks are told what happens. See Hooks for the calling rules.
	Hooks Hooks
}

// Renewal is the rhythm in which a lease is renewed.
type Renewal struct {
	// Every is the time between a successful renewal and the next one; each
	// pause is shortened by up to a tenth of it, at random.
	// Invariant: 0 < Every < TTL - margin.
	Every time.Duration
	// Timeout bounds a single attempt, and the question to the majority that confirms
	// it. When half of it has gone by without an answer, the same is asked once
	// more beside. After an attempt that failed it is doubled, up to a quarter of the
	// time left.
	// Invariant: 0 < Timeout.
	Timeout time.Duration
}

// DefaultRenewal renews every TTL/4 with attempts of TTL/12. Measured against a
// cluster of three with one member that swallows everything: no lease lost in 15
// tries, where one long stream lost 5. In virtual time, with the members drawn at
// random: none of 100 sessions lost in five minutes.
func DefaultRenewal(granted time.Duration) Renewal {
	return Renewal{Every: granted / 4, Timeout: granted / 12}
}

// Check refuses what Open would refuse before it sends anything, other than a missing
// Lease: for whoever fills that in later. The error wraps eldest.ErrInvalid.
func (c Config) Check() error {
	_, err := c.filled().wanted()
	return err
}

// withDefaults fills in what was left out and refuses what cannot work for any
// TTL.
func (c Config) withDefaults() (Config, error) {
	if absent.Client(c.Lease) {
		return c, fmt.Errorf("%w: Config.Lease is nil", eldest.ErrInvalid)
	}
	c = c.filled()
	if !answers(c.Majority) {
		return c, fmt.Errorf("%w: neither Config.Majority nor Config.Lease, of type %T, can list etcd's members to confirm renewals: "+
			"set Config.Majority to the client that clientv3.New returned, or to lease.Unconfirmed{} to do without", eldest.ErrInvalid, c.Lease)
	}
	return c, nil
}

func (c Config) filled() Config {
	if c.Majority == nil {
		c.Majority, _ = c.Lease.(Majority)
	}
	if c.Clock == nil {
		c.Clock = Boot()
	}
	if c.Renewal == nil {
		c.Renewal = DefaultRenewal
	}
	c.Backoff = retry.Or(c.Backoff, retry.Default())
	return c
}

// wanted returns the TTL to ask for, in seconds, and refuses one for which the
// margin or the rhythm cannot work.
func (c Config) wanted() (int64, error) {
	ttl, err := seconds(c.TTL)
	if err == nil {
		err = c.signs()
	}
	if err == nil {
		_, err = c.rhythm(time.Duration(ttl) * time.Second)
	}
	if err == nil {
		_, err = c.Heartbeat.pace(time.Duration(ttl) * time.Second)
	}
	return ttl, err
}

// signs refuses signs of life and of death that cannot be worked with.
func (c Config) signs() error {
	if c.Shared && c.Keeper != nil {
		return fmt.Errorf("%w: Config.Keeper is set, and others renew the lease as well (Config.Shared)", eldest.ErrInvalid)
	}
	if c.Shared && c.Heartbeat != (Heartbeat{}) {
		return fmt.Errorf("%w: Config.Heartbeat is set, and others renew the lease as well (Config.Shared)", eldest.ErrInvalid)
	}
	return c.Liveness.check()
}

// rhythm is everything that follows from a granted TTL.
func (c Config) rhythm(granted time.Duration) (core.Rhythm, error) {
	margin, err := marginOf(c.Margin, granted)
	if err != nil {
		return core.Rhythm{}, err
	}
	r := c.Renewal(granted)
	if r.Every <= 0 || r.Every >= granted-margin || r.Timeout <= 0 {
		return core.Rhythm{}, fmt.Errorf("%w: renewing every %v with attempts of %v does not fit a TTL of %v with a margin of %v",
			eldest.ErrInvalid, r.Every, r.Timeout, granted, margin)
	}
	return core.Rhythm{TTL: granted, Margin: margin, Every: r.Every, Timeout: r.Timeout}, nil
}
