package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that tested nothing reports what it lacks.
func TestInvalid(t *testing.T) {
	judged := func(more ...string) *History {
		h, err := write(append([]string{
			"put a", "put b", "put c", "@1 a joined", "@2 b joined", "@10 a won", "@11-12 a sure", "@20 a sent w1", "write a w1", "@30 a acked w1", "@40-50 r read w1",
			"@60 a sent w2", "@70 - struck", "@100 a stopped", "@2800 b won", "@3000 b sent w3", "write b w3", "@3010 b acked w3", "@3100 a continued", "@3101-3102 a not-sure",
			"@3103 a sent w4", "@3104 a refused w4", "@15 a fence-accepted", "@3103 a fence-refused", "@3500 c crashed", "@4000 a unclear w2", "@4100 - healed",
			"@4200-4201 b sure", "@4300 b suspended", "@4301 b resumed", "@4302 b evicted 2", "@10000-10001 queue b",
		}, more...))
		require.NoError(t, err)
		return h
	}
	all := Tally{
		Struck: map[string]int{"": 1}, Tenures: 2, Acked: 2, Refused: 1, Unclear: 1, Reads: 1, Samples: 3, LongStops: 1, Healed: 1, Queues: 1,
		Suspended: 1, Resumed: 1, Evicted: 1, Fenced: 1, FencedOff: 1,
	}
	require.Equal(t, all, judged().Tally())
	require.Empty(t, judged().Invalid(all))
	var more Tally
	more.Add(all)
	more.Add(all)
	require.Len(t, judged().Invalid(more), 15, "%v", judged().Invalid(more))
	require.Len(t, (&History{}).Invalid(Tally{}), 3, "no tenure, no write, no change")
	for more, c := range map[string]struct {
		needs Tally
		lacks string // empty: nothing
	}{
		"@80 - struck text=SIGSTOP": {Tally{Struck: map[string]int{"SIGSTOP": 1}}, ""},
		"@80 - struck text=SIGKILL": {Tally{Struck: map[string]int{"SIGSTOP": 1}}, "SIGSTOP"},
		"@80 - fault text=SIGSTOP":  {Tally{Struck: map[string]int{"SIGSTOP": 1}}, "SIGSTOP"},
		"set ttl=4000":              {Tally{LongStops: 1}, "stops of a leader"}, // stopped for a moment
		"@99 a ended":               {Tally{LongStops: 1}, "stops of a leader"}, // stopped when it was over
		"@99-99 a not-sure":         {Tally{LongStops: 1}, "stops of a leader"},
		"@4150 - struck":            {Tally{Healed: 1}, "recoveries from all faults"},
		"b sent w1":                 {Tally{}, "2 writes are named w1"},
		"@3050 b unclear w3":        {Tally{}, "write w3 has 2 outcomes"},
		"@3700 c joined":            {Tally{}, "c joined after its crash"},
	} {
		got := judged(more).Invalid(c.needs)
		if c.lacks == "" {
			require.Empty(t, got, more)
			continue
		}
		require.Len(t, got, 1, more)
		require.Contains(t, got[0], c.lacks)
	}
}
