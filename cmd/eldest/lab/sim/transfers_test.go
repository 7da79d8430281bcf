package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// What a seed draws of transfers leaves all else as it is without them.
func TestTransfersAreAnExtra(t *testing.T) {
	with := 0
	for seed := range uint64(200) {
		p := ordinary.drawSteady(seed)
		if p.asked != nil {
			with++
		}
		rest := 0
		for _, st := range p.steps {
			if st.verb != transfers && st.point != mailbox && st.reply != mailbox {
				rest++
			}
		}
		least, most := 5, 10
		if p.unhurried {
			least, most = 6, 12
		}
		require.True(t, rest >= least && rest <= most, "seed %d has %d steps that are no transfers", seed, rest)
	}
	require.Greater(t, with, 20)
	require.Less(t, with, 90)
}

// Without faults a transfer past others succeeds, and the checkers have something to judge.
func TestTransferWithoutFaults(t *testing.T) {
	p := &plan{
		style: ordinary, seed: 1, actors: 4, ttl: 5 * time.Second, tempo: usual,
		joins: []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond},
		trips: make([]time.Duration, 4), temper: make([]Temper, 4), asked: []bool{true, true, true, true},
		steps: []step{{at: 3 * time.Second, verb: transfers, role: aWaiter, pick: 1, keep: true, lasts: 10 * time.Second}},
	}
	r := run(t, contender.Ours{}, p)
	require.Empty(t, r.violations, "%v", r)
	require.Equal(t, 1, r.struck["transferred past others"], "%v", r)

	// Whoever is told that the order was kept, where it was not, is told a lie.
	for i, e := range r.history.Events {
		if e.Kind == oracle.Transferred {
			require.Len(t, e.Tokens, 2)
			r.history.Events[i].Plan, r.history.Events[i].Commit = e.Commit, e.Plan
		}
	}
	require.NotEmpty(t, oracle.Transfers(r.history))
}
