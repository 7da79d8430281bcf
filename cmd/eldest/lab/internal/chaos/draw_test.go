package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

const ttl = time.Second

func TestSameSeedSameRounds(t *testing.T) {
	different := 0
	for n := 1; n <= 200; n++ {
		a, b := Draw(7, n, Names(), ttl), Draw(7, n, Names(), ttl)
		require.Equal(t, a, b)
		if c := Draw(8, n, Names(), ttl); a.String() != c.String() {
			different++
		}
	}
	require.Greater(t, different, 150, "the seed means nothing")
}

// Over a thousand rounds every fault is drawn, and in the documented order.
func TestEverythingIsDrawn(t *testing.T) {
	met, pairs, slow := map[Fault]int{}, 0, 0
	holds := [2]int{}
	for n := 1; n <= 1000; n++ {
		r := Draw(1, n, Names(), ttl)
		require.NotEmpty(t, r.Injections)
		require.LessOrEqual(t, len(r.Injections), 2)
		require.GreaterOrEqual(t, r.Hold, time.Duration(0))
		require.Less(t, r.Hold, 3*ttl)
		for _, s := range r.Injections {
			met[s.Fault]++
			check(t, s)
		}
		if len(r.Injections) == 2 {
			pairs++
			first, second := kindOf(r.Injections[0].Fault), kindOf(r.Injections[1].Fault)
			if first.group == second.group {
				slow++
				require.Equal(t, Delay, first.Fault)
				require.NotEqual(t, Delay, second.Fault)
				require.Equal(t, Leader, r.Injections[1].On)
				require.Equal(t, r.Injections[0].Pick, r.Injections[1].Pick)
				require.Greater(t, r.Hold, ttl)
			} else {
				require.Less(t, first.group, second.group, r.String())
			}
		}
		if r.Hold >= ttl {
			holds[1]++
		} else {
			holds[0]++
		}
	}
	for _, f := range Names() {
		require.Greater(t, met[f], 12, f)
	}
	require.Greater(t, pairs, 200)
	require.Greater(t, slow, 10)
	require.Greater(t, holds[0], 200)
	require.Greater(t, holds[1], 200)
}

// check checks that an injection has what its fault needs.
func check(t *testing.T, in Injection) {
	t.Helper()
	switch k := kindOf(in.Fault); {
	case in.Fault == CutLeader:
		require.Equal(t, Leader, in.On)
	case in.Fault == Skew:
		require.GreaterOrEqual(t, in.Rate, slowest)
		require.LessOrEqual(t, in.Rate, fastest)
		require.False(t, in.Rate > 0.971 && in.Rate < 1.029)
	case in.Fault == Delay:
		require.Positive(t, in.Inbound+in.Outbound)
	case in.Fault == LostReply:
		require.NotEmpty(t, in.Reply)
		require.False(t, in.Reply == WriteReply && in.On != Leader)
	case in.Fault == CutOneWay:
		require.Contains(t, []Way{In, Out}, in.Way)
	case k.group == operators && k.draw == nil:
		require.Empty(t, in.On)
	default:
		require.NotEmpty(t, in.On)
	}
	require.Contains(t, in.String(), string(in.Fault))
}

// A wrong clock is the only fault of a round only if no other fault can be combined with it.
func TestSkewHasCompany(t *testing.T) {
	for n := range 200 {
		r := Draw(3, n, []Fault{Skew, Stop, Compact}, ttl)
		if r.Injections[0].Fault == Skew {
			require.Len(t, r.Injections, 2)
		}
		require.Len(t, Draw(3, n, []Fault{Skew}, ttl).Injections, 1)
	}
}

// Through a network that another fault has cut, compact-held would have nothing to hold back.
func TestCompactHeldHasTheNetworkToItself(t *testing.T) {
	company := 0
	for n := range 400 {
		r := Draw(3, n, []Fault{"client-cut", Delay, BlackHole, CompactHeld, Stop}, ttl)
		if !r.has(CompactHeld) {
			continue
		}
		for _, in := range r.Injections {
			require.NotEqual(t, networks, kindOf(in.Fault).group, r)
		}
		if r.has(Stop) {
			company++
		}
	}
	require.Positive(t, company)
}

func TestParse(t *testing.T) {
	faults, err := Parse(nil, contender.Eldest)
	require.NoError(t, err)
	require.Equal(t, Names(), faults)
	faults, err = Parse([]string{"kill", " stop", "kill"}, contender.Eldest)
	require.NoError(t, err)
	require.Equal(t, []Fault{Kill, Stop}, faults)
	faults, err = Parse([]string{"stop", "kill"}, contender.Eldest)
	require.NoError(t, err)
	require.Equal(t, []Fault{Kill, Stop}, faults, "the order in which they are named draws nothing else")
	_, err = Parse([]string{"kil"}, contender.Eldest)
	require.ErrorContains(t, err, `"kil"`)
	for _, i := range Kinds {
		require.NotEmpty(t, i.Summary)
	}
}
