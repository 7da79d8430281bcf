package storm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func TestClassOfACall(t *testing.T) {
	refused := call{code: codes.Unavailable, lost: true, nothing: true, limit: 3 * time.Second}
	change := func(of func(*call)) call {
		c := refused
		of(&c)
		return c
	}
	for name, want := range map[string]struct {
		call         call
		begun        int
		at           outage
		class, wrong string
	}{
		"refused, though it could have waited": {call: refused, wrong: "could have waited"},
		"by a node that was dead before":       {call: refused, at: outage{away: true}, wrong: "could have waited"},
		"by a node that stops":                 {call: refused, at: outage{away: true, leaving: true}, class: "refused by a node that stops"},
		"by the guard":                         {call: refused, begun: 1, class: "begun, and refused by the guard"},
		"begun twice":                          {call: refused, begun: 2, wrong: "begun more than once"},
		"in the end":                           {call: change(func(c *call) { c.at = c.begin.Add(c.limit) }), class: "waited to its limit"},
		"just before":                          {call: change(func(c *call) { c.at = c.begin.Add(c.limit - time.Second) }), wrong: "could have waited"},
		"in flight":                            {call: change(func(c *call) { c.nothing = false }), at: outage{died: true}, class: "in flight to a leader that was lost"},
		"in flight to nobody who died":         {call: change(func(c *call) { c.nothing = false }), at: outage{away: true}, wrong: "not begun, and of unknown outcome, though no node died"},
		"begun, and open":                      {call: change(func(c *call) { c.nothing = false }), begun: 1, class: "begun, and leadership was lost"},
		"after an acknowledgement":             {call: change(func(c *call) { c.acknowledged = 1 }), begun: 1, wrong: "acknowledged in parts, and told that nothing was applied"},
		"cut":                                  {call: change(func(c *call) { c.lost, c.nothing = false, false }), at: outage{away: true}, class: "cut: its node went away"},
		"cut from a node that was there":       {call: change(func(c *call) { c.lost, c.nothing = false, false }), wrong: "no LostLeadership, and its node was there"},
		"shed":                                 {call: change(func(c *call) { c.code = codes.ResourceExhausted }), wrong: "shed, though its caller is modest"},
		"shed, as it should":                   {call: change(func(c *call) { c.code, c.greedy = codes.ResourceExhausted, true }), class: "shed"},
		"refused, though its caller is greedy": {call: change(func(c *call) { c.greedy = true }), wrong: "could have waited"},
		"an answer that is nowhere":            {call: change(func(c *call) { c.code = codes.Internal }), wrong: "undocumented: Internal"},
		"cancelled by nobody":                  {call: change(func(c *call) { c.code = codes.Canceled }), wrong: "undocumented: Canceled"},
		"the answer":                           {call: call{}, begun: 1, class: "done"},
		"the answer, and it never began":       {call: call{}, wrong: "answered, and no handler was given it"},
		"the deadline":                         {call: call{code: codes.DeadlineExceeded}, class: "deadline passed"},
	} {
		t.Run(name, func(t *testing.T) {
			class, wrong := want.call.class(want.begun, want.at)
			require.Equal(t, want.class, class)
			require.Equal(t, want.wrong, wrong)
		})
	}
}
