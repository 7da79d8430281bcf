package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Candidates' keys that are deleted within a second of the moment when a former leader of etcd was
// resumed were deleted by etcd; earlier and later ones, and other keys, were not.
func TestTakenByEtcd(t *testing.T) {
	gone := func(at time.Duration, key string, token int64) oracle.Change {
		return oracle.Change{At: at, Key: key, Create: token, Deleted: true}
	}
	h := &oracle.History{About: oracle.About{Prefix: "chaos/", TTL: 2 * time.Second}, Changes: []oracle.Change{
		gone(4*time.Second-1, "chaos/1a", 2),
		gone(4*time.Second, "chaos/1b", 3),
		{At: 4*time.Second + 1, Key: "chaos/1c", Create: 9},
		gone(4*time.Second+2, "chaos-data", 4),
		gone(5*time.Second-1, "chaos/1d", 5),
		gone(5*time.Second, "chaos/1e", 6),
		gone(9*time.Second, "chaos/1f", 7),
	}}
	require.Empty(t, takenByEtcd(h, nil))
	taken := takenByEtcd(h, []time.Duration{time.Second, 4 * time.Second})
	require.Len(t, taken, 2)
	for i, want := range []oracle.Event{{Token: 3, Key: "chaos/1b", Lease: 0x1b}, {Token: 5, Key: "chaos/1d", Lease: 0x1d}} {
		require.Equal(t, oracle.Removed, taken[i].Kind)
		require.Equal(t, 4*time.Second, taken[i].At)
		require.Equal(t, want.Token, taken[i].Token)
		require.Equal(t, want.Key, taken[i].Key)
		require.Equal(t, want.Lease, taken[i].Lease)
		require.Equal(t, taken[i].Until, []time.Duration{6 * time.Second, 7*time.Second - 1}[i], "its lease ends by itself")
	}
}

// A key that is deleted soon after the crash of a participant with a keeper was deleted by the
// keeper, with its lease; keys deleted later, keys of others and keys of no candidate were not.
func TestRevokedByKeepers(t *testing.T) {
	gone := func(at time.Duration, key string) oracle.Change {
		return oracle.Change{At: at, Key: key, Deleted: true}
	}
	s := &series{cfg: Config{TTL: 2 * time.Second}, kept: []crash{{at: time.Second, lease: 0x1a}, {at: 3 * time.Second, lease: 0x1b}}}
	h := &oracle.History{About: oracle.About{Prefix: "chaos/"}, Changes: []oracle.Change{
		gone(time.Second-1, "chaos/1a"),
		{At: time.Second + 1, Key: "chaos/1a"},
		gone(time.Second+1, "chaos/1c"),
		gone(time.Second+1, "beat/1a"),
		gone(time.Second+1, "chaos/1a"),
		gone(4*time.Second-1, "chaos/1b"),
		gone(4*time.Second, "chaos/1b"),
	}}
	require.Equal(t, 2, s.revoked(h))
}

// A run is invalid if it had the occasion for something that never happened.
func TestRunMustHaveHadItsOccasions(t *testing.T) {
	rounds := func(n int, of Fault) (rounds []Round) {
		for range n {
			rounds = append(rounds, Round{Plan: Plan{Injections: []Injection{{Fault: of, On: Leader}}}, Effects: []Effect{{Fault: of}}})
		}
		return rounds
	}
	stops := func(n int) []Round { return rounds(n, Stop) }
	series := func(n int, of Fault) []Series { return []Series{{Rounds: rounds(n, of)}} }
	eldests := Config{Contender: contender.Eldest}
	without := append(rounds(silences-1, Silence), Round{Plan: Plan{Injections: []Injection{{Fault: Silence, On: Leader}}}})
	without = append(without, Round{Plan: Plan{Injections: []Injection{{Fault: Silence, On: Successor}}}, Effects: []Effect{{Fault: Silence}}})
	for name, c := range map[string]struct {
		report Report
		lacks  int
	}{
		"never stopped for long":    {Report{Series: []Series{{Rounds: stops(stopsOfLeaders - 5)}, {Rounds: stops(5)}}}, 1},
		"stopped for long, once":    {Report{Tally: oracle.Tally{LongStops: 1}, Series: []Series{{Rounds: stops(stopsOfLeaders)}}}, 0},
		"not stopped often":         {Report{Series: []Series{{Rounds: stops(stopsOfLeaders - 1)}}}, 0},
		"never refused":             {Report{Rounds: roundsWithWrites}, 1},
		"refused, once":             {Report{Rounds: roundsWithWrites, Tally: oracle.Tally{Refused: 1}}, 0},
		"few rounds, never refused": {Report{Rounds: roundsWithWrites - 1}, 0},
		"never fenced off":          {Report{Tally: oracle.Tally{LongStops: longStopsWithWrites}}, 1},
		"fenced off, once":          {Report{Tally: oracle.Tally{LongStops: longStopsWithWrites, FencedOff: 1}}, 0},
		"few long stops":            {Report{Tally: oracle.Tally{LongStops: longStopsWithWrites - 1}}, 0},
		"never evicted":             {Report{Series: series(silences, Silence)}, 1},
		"evicted, once":             {Report{Series: series(silences, Silence), Tally: oracle.Tally{Evicted: 1}}, 0},
		"few leaders silent":        {Report{Series: []Series{{Rounds: without}}}, 0},
		"never suspended":           {Report{Series: series(etcdsLeaders, EtcdKill), Tally: oracle.Tally{Resumed: 1}}, 1},
		"never resumed":             {Report{Series: series(etcdsLeaders, EtcdStop), Tally: oracle.Tally{Suspended: 1}}, 1},
		"suspended and resumed":     {Report{Series: series(etcdsLeaders, EtcdStop), Tally: oracle.Tally{Suspended: 1, Resumed: 1}}, 0},
		"etcd's leader seldom gone": {Report{Series: series(etcdsLeaders-1, EtcdKill)}, 0},
		"never revoked by a keeper": {Report{Config: eldests, Series: series(killsWithKeepers, Kill)}, 1},
		"revoked by a keeper, once": {Report{Config: eldests, Series: series(killsWithKeepers, Kill), Revoked: 1}, 0},
		"few killed":                {Report{Config: eldests, Series: series(killsWithKeepers-1, Kill)}, 0},
		"killed, without keepers":   {Report{Config: Config{Contender: "concurrency"}, Series: series(killsWithKeepers, Kill)}, 0},
	} {
		c.report.prove()
		require.Len(t, c.report.InvalidBecause, c.lacks, name)
	}
}
