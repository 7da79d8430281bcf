package elector

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// addresses are where other nodes forward requests to.
type addresses struct {
	// now is the address that was set last, at first Config.Address.
	now string
	// registered is set while the node has a key that it can write, or is about to register one;
	// published is the address in the value of that key.
	registered bool
	published  string
	// unsure is set while a request is under way, or its outcome is unknown, that replaces published.
	unsure bool
}

// pending reports whether the key may have another address than the one that was set last.
func (a addresses) pending() bool { return a.unsure || a.published != a.now }

// Address returns where other nodes forward requests to: Config.Address, or the address that
// SetAddress was given last. It does not block.
func (e *Elector) Address() string {
	a, _ := e.addresses.Get() // New sets the first one
	return a.now
}

// SetAddress replaces Config.Address, also while Run is running. A node that leads or waits in the
// queue publishes the address in the value of its key and keeps its tenure or its position; the
// request is repeated until etcd confirms it or the session ends. Followers receive the address in
// their status. Keys that the node registers later have the address as well. Watches of this node
// return its status once more. A value that was set with Leadership.Proclaim is replaced.
//
// SetAddress blocks until the node's key has the address that was set last, until the node has no
// key or has left it to its lease, or until ctx ends; in the last case it returns ctx's cause, and
// the address is still published. The error wraps eldest.ErrInvalid if Config.Codec refuses the
// address; then nothing has changed. A request whose reply was lost may be carried out later, even
// after the next one: then the key has its address until another one is set or the node registers
// again.
func (e *Elector) SetAddress(ctx context.Context, address string) error {
	if ctx == nil {
		return e.failed("set address", invalid("the context is nil"))
	}
	if _, err := e.cfg.at(address).value(e.instance, opening); err != nil {
		return e.failed("set address", err)
	}
	e.addresses.Update(func(a addresses) addresses { a.now = address; return a })
	e.cell.Update(func(p published) published { return p }) // readers of the status may read Address as well
	_, err := e.addresses.Reader().NextWhere(ctx, func(a addresses) bool { return !a.registered || !a.pending() })
	return e.failed("set address", err)
}

// at returns the config with another address.
func (c Config) at(address string) *Config {
	c.Address = address
	return &c
}

// registering returns the value of the key that the round is about to register, and records its
// address. unregistered follows.
func (r *round) registering() ([]byte, error) {
	e := r.e
	e.addresses.Update(func(a addresses) addresses {
		a.registered, a.published, a.unsure = true, a.now, false
		return a
	})
	a, _ := e.addresses.Get()
	return e.cfg.at(a.published).value(e.instance, r.session.TTL())
}

// unregistered records that the round leaves the queue, or cannot write its key any more.
func (r *round) unregistered() {
	r.e.addresses.Update(func(a addresses) addresses { a.registered = false; return a })
}

// publishAddress keeps the address in the value of the key up to date until the session ends.
func (r *round) publishAddress() {
	e, ctx := r.e, r.session.Context()
	r.closing.Go(func() {
		for failures := 0; ; {
			a, err := e.addresses.Reader().NextWhere(ctx, addresses.pending)
			if err != nil {
				return
			}
			// Before the request: after a lost reply the former address has to be published again, too.
			e.addresses.Update(func(is addresses) addresses { is.unsure = true; return is })
			if err = r.proclaim(ctx, a.now); err == nil {
				e.addresses.Update(func(is addresses) addresses { is.published, is.unsure = a.now, false; return is })
				failures = 0
				continue
			}
			unsure := a.unsure || errors.Is(err, eldest.ErrOutcomeUnknown) // a refused request has changed nothing
			e.addresses.Update(func(is addresses) addresses { is.unsure = unsure; return is })
			if failures == 0 {
				e.log.warn("the new address is not published yet", "address", a.now, "error", err)
			}
			if retry.Sleep(ctx, pause(failures)) != nil {
				return
			}
			failures++
		}
	})
}

// proclaim replaces the value of the key by one with the address.
func (r *round) proclaim(ctx context.Context, address string) error {
	value, err := r.e.cfg.at(address).value(r.e.instance, r.session.TTL())
	if err != nil {
		return fmt.Errorf("the codec refuses the address: %w", err)
	}
	return r.candidate.Proclaim(ctx, value)
}
