package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// Over a thousand rounds everything is met, and in the promised order.
func TestEverythingIsDrawn(t *testing.T) {
	met, pairs, slow := map[Fault]int{}, 0, 0
	holds := [2]int{}
	for n := 1; n <= 1000; n++ {
		r := Draw(1, n, Names(), ttl)
		require.NotEmpty(t, r.Strikes)
		require.LessOrEqual(t, len(r.Strikes), 2)
		require.GreaterOrEqual(t, r.Hold, time.Duration(0))
		require.Less(t, r.Hold, 3*ttl)
		for _, s := range r.Strikes {
			met[s.Fault]++
			check(t, s)
		}
		if len(r.Strikes) == 2 {
			pairs++
			first, second := info(r.Strikes[0].Fault), info(r.Strikes[1].Fault)
			if first.group == second.group {
				slow++
				require.Equal(t, Delay, first.Fault)
				require.NotEqual(t, Delay, second.Fault)
				require.Equal(t, Leader, r.Strikes[1].On)
				require.Equal(t, r.Strikes[0].Pick, r.Strikes[1].Pick)
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

// check holds a strike against what its fault needs.
func check(t *testing.T, s Strike) {
	t.Helper()
	switch s.Fault {
	case MoveLeader, Compact, Defragment:
		require.Empty(t, s.On)
	case CutLeader:
		require.Equal(t, Leader, s.On)
	case Skew:
		require.GreaterOrEqual(t, s.Rate, slowest)
		require.LessOrEqual(t, s.Rate, fastest)
		require.False(t, s.Rate > 0.971 && s.Rate < 1.029)
	case Delay:
		require.Positive(t, s.Inbound+s.Outbound)
	case LostReply:
		require.NotEmpty(t, s.Reply)
		require.False(t, s.Reply == WriteReply && s.On != Leader)
	case CutOneWay, ClientOneWay:
		require.Contains(t, []Way{In, Out}, s.Way)
	default:
		require.NotEmpty(t, s.On)
	}
	require.Contains(t, s.String(), string(s.Fault))
}

// A clock that is off comes alone only where there is nothing to go with it.
func TestSkewHasCompany(t *testing.T) {
	for n := range 200 {
		r := Draw(3, n, []Fault{Skew, Stop, Compact}, ttl)
		if r.Strikes[0].Fault == Skew {
			require.Len(t, r.Strikes, 2)
		}
		require.Len(t, Draw(3, n, []Fault{Skew}, ttl).Strikes, 1)
	}
}

func TestParse(t *testing.T) {
	faults, err := Parse(nil)
	require.NoError(t, err)
	require.Equal(t, Names(), faults)
	faults, err = Parse([]string{"kill", " stop", "kill"})
	require.NoError(t, err)
	require.Equal(t, []Fault{Kill, Stop}, faults)
	faults, err = Parse([]string{"stop", "kill"})
	require.NoError(t, err)
	require.Equal(t, []Fault{Kill, Stop}, faults, "the order in which they are named draws nothing else")
	_, err = Parse([]string{"kil"})
	require.ErrorContains(t, err, `"kil"`)
	for _, i := range All() {
		require.NotEmpty(t, i.Summary)
	}
}
