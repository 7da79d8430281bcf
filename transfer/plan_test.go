package transfer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// queueOfLetters makes a queue: an upper-case letter takes part, a lower-case one does not, and one
// with a question mark after it has a pending request.
func queueOfLetters(line string) Queue {
	q := Queue{Election: "e", Revision: 99}
	for i, r := range line {
		if r == '?' {
			q.Members[len(q.Members)-1].Pending = true
			continue
		}
		q.Members = append(q.Members, Member{
			Candidate: eldest.Candidate{Key: strings.ToUpper(string(r)), Lease: int64(i + 1), Token: eldest.Token(i + 1)},
			TakesPart: r < 'a',
		})
	}
	return q
}

func letters(all []eldest.Candidate) string {
	var b strings.Builder
	for _, c := range all {
		b.WriteString(c.Key)
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	for _, tc := range []struct {
		line, target string
		order        Order
		back, passed string
		reason       Reason
		who          string
	}{
		{"LABTC", "A", Keep, "", "", "", ""},
		{"LABTC", "T", Keep, "ABC", "", "", ""},
		{"LABTC", "T", PassBy, "AB", "C", "", ""},
		{"LABTC", "C", Keep, "ABT", "", "", ""},
		{"LABTC", "C", PassBy, "ABT", "", "", ""},
		{"Labtc", "A", Keep, "", "", "", ""},
		{"Labtc", "A", PassBy, "", "", "", ""},
		{"LABtC", "T", Keep, "ABC", "", "", ""}, // the target receives no request
		{"LABTc", "T", Keep, "", "", Behind, "C"},
		{"LABTc", "T", PassBy, "AB", "C", "", ""},
		{"LaBTC", "T", Keep, "", "", Between, "A"},
		{"LabTc", "T", PassBy, "", "", Between, "AB"},
		{"lABTC", "A", Keep, "", "", LeaderTakesNoPart, "L"},
		{"LABTC", "L", Keep, "", "", AlreadyLeads, "L"},
		{"lABTC", "L", Keep, "", "", AlreadyLeads, "L"},
		{"LABTC", "X", Keep, "", "", UnknownTarget, ""},
		{"", "X", Keep, "", "", NoLeader, ""},
		{"L?AB", "B", Keep, "", "", Busy, "L"},
		{"LA?B", "B", Keep, "", "", Busy, "A"},
		{"L?A?B", "B", Keep, "", "", Busy, "LA"},
		{"LAB?", "A", Keep, "", "", "", ""},
	} {
		t.Run(fmt.Sprintf("%s to %s %v", tc.line, tc.target, tc.order), func(t *testing.T) {
			q := queueOfLetters(tc.line)
			p, err := q.Plan(tc.target, Options{Order: tc.order})
			require.Equal(t, queueOfLetters(tc.line), q, "a pure function")
			if tc.reason != "" {
				var r *Refusal
				require.ErrorAs(t, err, &r)
				require.ErrorIs(t, err, eldest.ErrTransferRefused)
				require.Equal(t, tc.reason, r.Reason)
				require.Equal(t, tc.who, letters(r.Who))
				for _, c := range r.Who {
					require.Contains(t, err.Error(), fmt.Sprintf("%q", c.Key))
				}
				return
			}
			require.NoError(t, err)
			require.Equal(t, "L", p.Leader.Key)
			require.Equal(t, tc.target, p.Target.Key)
			require.Equal(t, tc.back, letters(p.Back))
			require.Equal(t, tc.passed, letters(p.Overtaken))
			require.Equal(t, int64(99), p.Revision)
			require.Len(t, p.asked, len(p.Back)+1)
			require.Equal(t, "L", p.asked[len(p.Back)].Key, "the leader last")
		})
	}
}

// The result of a plan, simulated: each candidate in Back goes to the end, the leader leaves.
func TestPlansKeepTheirWord(t *testing.T) {
	const line = "LABCDEF"
	for _, order := range []Order{Keep, PassBy} {
		for _, target := range line[1:] {
			p, err := queueOfLetters(line).Plan(string(target), Options{Order: order})
			require.NoError(t, err)
			after := line[1:]
			for _, c := range p.Back {
				after = strings.Replace(after, c.Key, "", 1) + c.Key
			}
			require.Equal(t, string(target), after[:1])
			if order == Keep || len(p.Back) == 0 {
				require.Equal(t, strings.Replace(line[1:], string(target), "", 1), after[1:])
			} else {
				require.Equal(t, letters(p.Overtaken)+letters(p.Back), after[1:])
			}
		}
	}
}

// A plan for a target that would yield is refused before the leader receives a request; the leader
// itself does not count.
func TestPlanForATargetThatYields(t *testing.T) {
	q := queueOfLetters("LABC")
	for i, priority := range []string{"9", "1", "5", "3"} {
		q.Members[i].Value = []byte(priority)
	}
	options := Options{ShouldYield: election.ByPriority(func(value []byte) int { return int(value[0]) })}
	for target, refused := range map[string]bool{"A": true, "B": false, "C": true} {
		p, err := q.Plan(target, options)
		if !refused {
			require.NoError(t, err, target)
			continue
		}
		require.Empty(t, p.Back)
		var refusal *Refusal
		require.ErrorAs(t, err, &refusal, target)
		require.Equal(t, Outranked, refusal.Reason)
		require.Equal(t, target, letters(refusal.Who))
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Order: 2}, {Timeout: -1}, {Drain: -1}} {
		require.ErrorIs(t, etcdtest.Err(queueOfLetters("LA").Plan("A", o)), eldest.ErrInvalid)
	}
	for _, o := range []Order{Keep, PassBy} {
		got, err := ParseOrder(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	require.ErrorIs(t, etcdtest.Err(ParseOrder("random")), eldest.ErrInvalid)
}

func TestRefusals(t *testing.T) {
	for reason, want := range map[Reason]error{
		NoLeader: eldest.ErrNoLeader, UnknownTarget: eldest.ErrNotRegistered, AlreadyLeads: eldest.ErrLeading,
		NoAnswer: eldest.ErrTransferRefused, "another version's": eldest.ErrTransferRefused,
	} {
		require.ErrorIs(t, &Refusal{Reason: reason}, want)
		require.NotErrorIs(t, &Refusal{Reason: reason}, eldest.ErrOutcomeUnknown)
	}
	r := &Refusal{Reason: NoAnswer, Unknown: true}
	require.ErrorIs(t, r, eldest.ErrOutcomeUnknown)
	require.ErrorContains(t, r, "may still be carried out")
}

// Only a request key with the current token, bound to the candidate's own lease, counts.
func TestRequestKeysOfAQueue(t *testing.T) {
	box := func(lease int64, value string) requestkey.Key {
		return requestkey.Key{Value: []byte(value), Mod: 50 + lease, Created: 1, Lease: lease}
	}
	var line txn.Snapshot
	for lease := int64(1); lease <= 7; lease++ {
		line.Queue = append(line.Queue, eldest.Candidate{Key: keys.Candidate("e", lease), Lease: lease, Token: eldest.Token(10 + lease)})
	}
	boxes := map[int64]requestkey.Key{
		1: box(1, `{"v":1,"token":11}`),
		2: box(2, `{"v":1,"token":5}`),                    // an earlier token
		3: box(3, `{"v":2,"token":13}`),                   // another version
		4: box(4, `no message`),                           // another program
		5: {Value: []byte(`{"v":1,"token":15}`), Mod: 55}, // bound to no lease
		6: box(6, `{"v":1,"token":16,"request":{"id":"x","do":"drain"},"news":true}`),
	}
	q := queueOf("e", line, boxes)
	for i, want := range []struct{ asks, pending bool }{{true, false}, {}, {}, {}, {}, {true, true}, {}} {
		require.Equal(t, want.asks, q.Members[i].TakesPart, i)
		require.Equal(t, want.pending, q.Members[i].Pending, i)
		require.Equal(t, boxes[int64(i+1)].Mod, q.Members[i].mod)
	}
	require.Equal(t, []string{keys.Request("e", 3), keys.Request("e", 4)}, q.Unread)
}
