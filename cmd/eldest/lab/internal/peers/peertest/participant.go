package peertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Participant is a client with a network of its own.
type Participant struct {
	peer.Client
	close   func() error // closes the client once
	network *peers.Network
	t       testing.TB
}

var elections atomic.Int64

// Participants opens n clients of a new election, until the test ends.
func Participants(t testing.TB, s peer.System, servers *peer.Servers, setting string, n int) []*Participant {
	t.Helper()
	election := fmt.Sprint("election-", elections.Add(1))
	var all []*Participant
	for i := range n {
		p := &Participant{network: peers.NewNetwork(), t: t}
		t.Cleanup(p.network.Close)
		c, err := s.Dial(etcdtest.Context(t), peer.ClientConfig{
			Setting: setting, Endpoints: servers.Endpoints, Election: election,
			ID: fmt.Sprint("p", i), Index: i, Net: p.network,
		})
		require.NoError(t, err)
		p.Client, p.close = c, sync.OnceValue(c.Close)
		all = append(all, p)
		t.Cleanup(func() {
			p.Heal()
			require.NoError(t, p.Close())
		})
	}
	return all
}

// Close closes the client before the test ends.
func (p *Participant) Close() error { return p.close() }

// Cut cuts the participant's network. The test is skipped where that is not supported.
func (p *Participant) Cut() {
	p.t.Helper()
	err := p.network.Cut()
	if errors.Is(err, errors.ErrUnsupported) {
		p.t.Skipf("SKIPPED: %v", err)
	}
	require.NoError(p.t, err)
}

// Heal ends the cut.
func (p *Participant) Heal() {
	p.t.Helper()
	if err := p.network.Heal(); !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(p.t, err)
	}
}

// Campaign is a campaign that runs.
type Campaign struct {
	t      testing.TB
	Queued chan struct{}
	won    chan peer.Tenure
}

// Campaign starts a campaign, which ends with the test.
func (p *Participant) Campaign(id string) *Campaign {
	c := &Campaign{t: p.t, Queued: make(chan struct{}), won: make(chan peer.Tenure, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := etcdtest.Go(func() error {
		tenure, err := p.Client.Campaign(ctx, id, func() { close(c.Queued) })
		if err == nil {
			c.won <- tenure
		} else if ctx.Err() == nil {
			p.t.Errorf("campaign of %s: %v", id, err)
		}
		return nil
	})
	p.t.Cleanup(func() {
		cancel()
		require.NoError(p.t, <-ended)
	})
	return c
}

// Win waits until the candidate leads.
func (c *Campaign) Win() peer.Tenure {
	c.t.Helper()
	return etcdtest.Take(c.t, c.won, "win")
}

// Wait waits until the candidate is queued.
func (c *Campaign) Wait() *Campaign {
	c.t.Helper()
	etcdtest.Take(c.t, c.Queued, "queued")
	return c
}

// Append adds an entry within 20 seconds.
func Append(t testing.TB, tenure peer.Tenure, entry string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return tenure.Append(ctx, entry)
}

// Observe observes until the test ends, and returns the channel of the leaders.
func (p *Participant) Observe() <-chan string {
	observer, ok := p.Client.(peer.Observer)
	require.True(p.t, ok)
	ctx, cancel := context.WithCancel(context.Background())
	leaders := make(chan string, 100)
	ended := etcdtest.Go(func() error { return observer.Observe(ctx, func(id string) { leaders <- id }) })
	p.t.Cleanup(func() {
		cancel()
		require.ErrorIs(p.t, etcdtest.Take(p.t, ended, "the observer's end"), context.Canceled)
	})
	return leaders
}
