package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// judged runs a checker over timelines and counts what it finds.
func judged(t *testing.T, check func(*History) []Violation, all map[string]trial) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			got := check(c.history)
			require.Len(t, got, c.found, "%v\n%v", got, c.history)
		})
	}
}

type trial struct {
	history *History
	found   int
}

// removed is a removal by hand of a token's key.
func removed(at int, token int64) []Event {
	return []Event{{At: ms(at), Who: "admin", Kind: Removed, Token: token, Key: key(token)}}
}

func revoked(at int, lease int64) []Event {
	return []Event{{At: ms(at), Who: "admin", Kind: Removed, Lease: lease}}
}

// both is a removal of a token's key, of which the lease is known too.
func both(at int, token, lease int64) []Event {
	e := removed(at, token)
	e[0].Lease = lease
	return e
}

// bounded says how long the news of a removal may be under way.
func bounded(removal []Event, at int) []Event {
	removal[0].Until = ms(at)
	return removal
}

// gone is a history in which the store told that a token's key was deleted.
func gone(h *History, at int, token int64) *History {
	h.Changes = []Change{
		{Rev: token, At: tick, Key: key(token), Create: token},
		{Rev: 100, At: ms(at), Key: key(token), Create: token, Deleted: true},
	}
	return h
}

func TestLeading(t *testing.T) {
	a, b := won(1, 10, "a", 2), won(1, 100, "b", 3)
	judged(t, Leading, map[string]trial{
		"two leaders":                        {timeline(a, b, asks(101, 102, "a", Sure, 2)), 1},
		"two leaders, often":                 {timeline(a, b, asks(101, 102, "a", Sure, 2), asks(110, 120, "a", Sure, 2)), 1},
		"two leaders, the third":             {timeline(a, won(1, 500, "c", 4), asks(501, 502, "a", Sure, 2)), 1},
		"two leaders, told out of order":     {timeline(won(1, 10, "a", 2), won(1, 600, "b", 3), won(1, 500, "c", 4), asks(510, 520, "a", Sure, 2)), 1},
		"looked after the win, then stopped": {timeline(a, b, paused(105, 200, "a"), asks(101, 300, "a", Sure, 2)), 1},
		"its key is gone":                    {gone(timeline(a, asks(101, 102, "a", Sure, 2)), 100, 2), 1},
		"its key is gone, taken afterwards":  {gone(timeline(a, asks(101, 102, "a", Sure, 2), removed(110, 2)), 100, 2), 1},
		"first use after a stop":             {timeline(a, paused(20, 20+ttl+200, "a"), asks(2300, 2301, "a", Sure, 2)), 1},
		"later use after a stop":             {timeline(a, paused(20, 20+ttl+200, "a"), asks(2300, 2301, "a", NotSure, 2), asks(2400, 2401, "a", Sure, 2)), 2}, // by the stop, and as once again
		"stopped before it was told":         {timeline(won(1, 5000, "a", 2), paused(20, 20+ttl+200, "a"), asks(5001, 5002, "a", Sure, 2)), 1},
		"sure again":                         {timeline(a, asks(20, 21, "a", NotSure, 2), asks(30, 31, "a", Sure, 2)), 1},
		"sure after the end":                 {timeline(a, says(20, "a", Ended, 2), asks(30, 31, "a", Sure, 2)), 1},
		"sure, and never won":                {timeline(a, asks(20, 21, "b", Sure, 2), asks(30, 31, "b", Sure, 2)), 1},
		"another's key taken":                {timeline(a, b, removed(50, 3), asks(101, 102, "a", Sure, 2)), 1},
		"taken only afterwards":              {timeline(a, b, asks(101, 102, "a", Sure, 2), removed(150, 2)), 1},
		"taken, healed, and never heard":     {timeline(a, b, removed(50, 2), says(200, "", Healed, 0), asks(200+ttl+3001, 9000, "a", Sure, 2)), 1},
		"taken, and past its own deadline":   {timeline(a, b, bounded(removed(50, 2), 500), asks(501, 502, "a", Sure, 2)), 1},
		"another tenure of its lease taken":  {timeline(a, b, both(50, 5, 2), asks(101, 102, "a", Sure, 2)), 1},
		"its own newer tenure":               {timeline(a, won(50, 60, "a", 5), asks(70, 80, "a", Sure, 2)), 1},

		"nothing":                           {timeline(), 0},
		"one":                               {timeline(a, asks(20, 30, "a", Sure, 2), asks(31, 32, "a", Sure, 2)), 0},
		"the newer":                         {timeline(a, b, asks(101, 102, "b", Sure, 3)), 0},
		"its key goes":                      {gone(timeline(a, asks(99, 102, "a", Sure, 2)), 100, 2), 0},
		"another's key is gone":             {gone(timeline(a, asks(101, 102, "a", Sure, 2)), 100, 3), 0},
		"its key is gone, taken by hand":    {gone(timeline(a, removed(50, 2), asks(101, 102, "a", Sure, 2)), 100, 2), 0},
		"sure until the win":                {timeline(a, b, asks(98, 99, "a", Sure, 2)), 0},
		"the win fell between two readings": {timeline(a, b, asks(99, 102, "a", Sure, 2)), 0},
		"one reading":                       {timeline(a, b, asks(100, 102, "a", Sure, 2)), 0}, // a coarse clock: which came first is not known
		"looked, was stopped, answered":     {timeline(a, b, paused(40, 90+ttl, "a"), asks(39, 95+ttl, "a", Sure, 2)), 0},
		"not sure after a stop":             {timeline(a, b, paused(20, 20+ttl+200, "a"), asks(2300, 2301, "a", NotSure, 2)), 0},
		"a short stop":                      {timeline(a, paused(20, ttl, "a"), asks(2300, 2301, "a", Sure, 2)), 0},
		"a stop of its lease's length":      {timeline(a, paused(20, 20+ttl+50, "a"), asks(2300, 2301, "a", Sure, 2)), 0},
		"another's stop":                    {timeline(a, paused(20, 20+ttl+200, "b"), asks(2300, 2301, "a", Sure, 2)), 0},
		"won after the stop":                {timeline(paused(20, 20+ttl+200, "a"), won(2300, 2400, "a", 2), asks(2401, 2402, "a", Sure, 2)), 0},
		"two short stops":                   {timeline(a, paused(20, 1200, "a"), paused(1201, 2400, "a"), asks(2401, 2402, "a", Sure, 2)), 0},
		"taken, and the news under way":     {timeline(a, b, removed(50, 2), asks(101, 102, "a", Sure, 2)), 0},
		"taken, before its own deadline":    {timeline(a, b, bounded(removed(50, 2), 500), asks(499, 502, "a", Sure, 2)), 0},
		"revoked, and the news under way":   {timeline(a, b, revoked(50, 2), says(60, "", Healed, 0), asks(101, 102, "a", Sure, 2)), 0},
		"taken, and healed only before":     {timeline(a, b, healed(20), removed(50, 2), asks(9000, 9001, "a", Sure, 2)), 0},
		"sure, then not":                    {timeline(a, asks(20, 30, "a", Sure, 2), asks(40, 41, "a", NotSure, 2)), 0},
		"samples in any order":              {timeline(a, asks(20, 30, "a", NotSure, 2), asks(25, 40, "a", Sure, 2)), 0},
		"overlapping samples":               {timeline(a, asks(20, 30, "a", NotSure, 2), asks(19, 40, "a", Sure, 2)), 0},
	})
}

// A participant that is never told to go on is stopped for good, and one that is
// killed while it is stopped, until then.
func TestStops(t *testing.T) {
	h := timeline(paused(1, 2, "a"), says(3, "a", Stopped, 0), says(4, "a", Crashed, 0), says(5, "b", Continued, 0), says(6, "b", Stopped, 0))
	got := h.stops()
	require.Equal(t, []stop{{ms(1), ms(2)}, {ms(3), ms(4)}}, got["a"])
	require.Len(t, got["b"], 1)
	require.True(t, got["b"][0].overlaps(ms(100), time.Hour))
	require.False(t, got["b"][0].overlaps(ms(1), ms(5)))
	require.False(t, got["b"][0].outlives(&tenure{}, ms(ttl)), "nobody is asked after it")
}
