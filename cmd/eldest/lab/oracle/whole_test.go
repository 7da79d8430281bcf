package oracle

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// run is a run of processes that has everything in it and in which all is well: a
// leads, is stopped for longer than its lease while a write is on its way, and b
// leads; c is killed; the write of unknown outcome is there; all heals.
func run() *History {
	h := timeline(
		joins(1, "a", 0xa), joins(2, "b", 0xb), joins(3, "c", 0xc),
		says(10, "a", Won, 2), asks(11, 12, "a", Sure, 2),
		wrote(20, 30, "a", 2, "w1", Acked), read(40, 50, "w1"),
		wrote(60, 4000, "a", 2, "w2", Unclear),
		says(70, "", Struck, 0), says(100, "a", Stopped, 0),
		says(2800, "b", Won, 3), read(2850, 2860, "w2"), asks(2900, 2901, "b", Sure, 3),
		wrote(3000, 3010, "b", 3, "w3", Acked),
		says(3100, "a", Continued, 0), asks(3101, 3102, "a", NotSure, 2),
		wrote(3103, 3104, "a", 2, "w4", Refused),
		says(3105, "a", Ended, 2),
		says(15, "a", FenceAccepted, 2), says(3020, "b", FenceAccepted, 3), says(3103, "a", FenceRefused, 2),
		says(3500, "c", Crashed, 0), joins(3600, "a", 0xd),
		healed(4100), asks(4200, 4201, "b", Sure, 3), read(5000, 5001, "w3"),
		list(10_000, 10_001, 0xb, 0xd),
	)
	h.Changes = []Change{
		{Rev: 2, Key: key(0xa), Create: 2}, {Rev: 3, Key: key(0xb), Create: 3}, {Rev: 4, Key: key(0xc), Create: 4},
		{Rev: 5, Key: "data", Create: 5, Value: WriteValue(2, "w1")}, {Rev: 6, Key: "data", Create: 5, Value: WriteValue(2, "w2")},
		{Rev: 7, Key: key(0xa), Create: 2, Deleted: true}, {Rev: 8, Key: "data", Create: 5, Value: WriteValue(3, "w3")},
		{Rev: 9, Key: key(0xc), Create: 4, Deleted: true}, {Rev: 10, Key: key(0xd), Create: 10},
	}
	for i, at := range []int{4, 5, 6, 25, 65, 2750, 3005, 3700, 3601} { // told a moment after the commit
		h.Changes[i].At = ms(at)
	}
	return h
}

// with is a run to which more was told.
func with(events ...[]Event) *History {
	h := run()
	again := timeline(append([][]Event{h.Events}, events...)...)
	h.Events = again.Events
	return h
}

// without is a run in which events were not so.
func without(gone func(Event) bool) *History {
	h := run()
	h.Events = slices.DeleteFunc(h.Events, gone)
	return h
}

func changed(f func(h *History)) *History {
	h := run()
	f(h)
	return h
}

// Each kind of history that must not be is caught, by the checker that is there for
// it, among all that judge a run.
func TestKnownBadHistories(t *testing.T) {
	require.Empty(t, run().Judge())
	require.Empty(t, run().Invalid(Tally{Tenures: 2, Acked: 2, Refused: 1, Reads: 3, Samples: 4, LongStops: 1, Healed: 1, Queues: 1, Fenced: 2}))
	for name, c := range map[string]struct {
		history *History
		by      string
	}{
		"two leaders":               {with(asks(2950, 2960, "a", Sure, 2)), "leading"},
		"sure without a key":        {with(asks(2760, 2761, "a", Sure, 2)), "leading"},
		"first use after a stop":    {with(asks(3100, 3101, "a", Sure, 2)), "leading"},
		"a lost write":              {changed(func(h *History) { h.Changes = slices.Delete(h.Changes, 3, 4) }), "I3"},
		"a write that was refused":  {changed(func(h *History) { h.Changes[7] = Change{Rev: 9, Key: "data", Create: 5, Value: WriteValue(2, "w4")} }), "I3"},
		"a deposed leader's write":  {with(wrote(3200, 3210, "a", 2, "w5", Acked)), "linear"},
		"a deposed leader's commit": {changed(func(h *History) { h.Changes[7] = Change{Rev: 9, Key: "data", Create: 5, Value: WriteValue(2, "w2")} }), "I2"},
		"data taken away": {changed(func(h *History) {
			h.Changes = slices.Insert(h.Changes, 8, Change{Rev: 8, At: ms(3500), Key: "data", Create: 5, Deleted: true})
		}), "I3"},
		"a stranger's write":          {with(wrote(3200, 3210, "c", 3, "w5", Refused)), "I2"},
		"stale reads":                 {with(read(3050, 3060, "w1")), "linear"},
		"a phantom":                   {with(says(3650, "c", Joined, 0), says(3700, "c", Won, 4)), "I4"},
		"a token going back":          {with(joins(3650, "e", 0xe), says(3700, "e", Won, 2)), "tokens"},
		"an older token in the store": {with(says(3200, "a", FenceAccepted, 2)), "fence"},
		"no leader after the faults":  {without(func(e Event) bool { return e.At > ms(4100) && (e.Kind == Sure) }), "healing"},
		"a ghost in the queue":        {without(func(e Event) bool { return e.Kind == Joined && e.Lease == 0xd }), "healing"},
		"a waiter without a place":    {with(joins(3600, "f", 0xf)), "healing"},
		"something left":              {with([]Event{{At: ms(20_000), Kind: Left, Text: "lease f"}}), "left"},
		"two ends":                    {with(says(3700, "a", Ended, 2)), "I6"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.history.Judge()
			require.True(t, slices.ContainsFunc(got, func(v Violation) bool { return v.Invariant == c.by }), "%v\n%v", got, c.history)
		})
	}
}

// A run that put nothing to the test says what it lacks.
func TestInvalid(t *testing.T) {
	needs := Tally{
		Struck: map[string]int{"SIGSTOP": 1}, Tenures: 3, Acked: 3, Refused: 2, Reads: 9, Samples: 9, LongStops: 2, Healed: 2, Queues: 2, Fenced: 3,
	}
	require.Len(t, run().Invalid(needs), 10, "%v", run().Invalid(needs))
	require.Len(t, (&History{}).Invalid(Tally{}), 3, "no tenure, no write, no change")
	for name, c := range map[string]struct {
		history *History
		needs   Tally
		lacks   string // empty: nothing
	}{
		"a fault struck":            {with([]Event{{At: 1, Kind: Struck, Text: "SIGSTOP"}}), Tally{Struck: map[string]int{"SIGSTOP": 1}}, ""},
		"another fault struck":      {with([]Event{{At: 1, Kind: Struck, Text: "SIGKILL"}}), Tally{Struck: map[string]int{"SIGSTOP": 1}}, "SIGSTOP"},
		"a fault only noted":        {with([]Event{{At: 1, Kind: Fault, Text: "SIGSTOP"}}), Tally{Struck: map[string]int{"SIGSTOP": 1}}, "SIGSTOP"},
		"stopped for a moment":      {changed(func(h *History) { h.TTL *= 2 }), Tally{LongStops: 1}, "stops of a leader"},
		"nobody asked after a stop": {without(func(e Event) bool { return e.Kind == NotSure }), Tally{LongStops: 1}, "stops of a leader"},
		"stopped when it was over":  {with(says(99, "a", Ended, 2)), Tally{LongStops: 1}, "stops of a leader"},
		"struck while it recovered": {with(says(4150, "", Struck, 0)), Tally{Healed: 1}, "all had healed"},
		"no store":                  {changed(func(h *History) { h.Changes = nil }), Tally{}, "changes of the store"},
		"one name for two writes":   {with(wrote(3300, 3400, "b", 3, "w1", Refused)), Tally{}, "2 writes are named w1"},
		"two outcomes of a write":   {with([]Event{{At: ms(3050), Who: "b", Kind: Unclear, Token: 3, Write: "w3"}}), Tally{}, "write w3 has 2 outcomes"},
		"back from the dead":        {with(joins(3700, "c", 0xf)), Tally{}, "c joined after its crash"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.history.Invalid(c.needs)
			if c.lacks == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], c.lacks)
		})
	}
	require.Equal(t, Tally{
		Struck: map[string]int{"": 1}, Tenures: 2, Acked: 2, Refused: 1, Unclear: 1, Reads: 3, Samples: 4,
		LongStops: 1, Healed: 1, Queues: 1, Fenced: 2, FencedOff: 1,
	}, run().Tally())
}
