package oracle

import "testing"

// recovered is when all must be well that healed at 1000.
const recovered = 1000 + ttl + 3000

func healed(at int) []Event { return says(at, "", Healed, 0) }

// later ends the log after everything was due.
func later() []Event { return says(60_000, "", Fault, 0) }

func joins(at int, who string, lease int64) []Event {
	return []Event{{At: ms(at), Who: who, Kind: Joined, Lease: lease}}
}

// list is the queue with the keys of leases.
func list(at, until int, leases ...int64) []Event {
	e := Event{At: ms(at), Until: ms(until), Kind: Queue, Keys: []string{}}
	for _, lease := range leases {
		e.Keys = append(e.Keys, key(lease))
	}
	return []Event{e}
}

func TestHealing(t *testing.T) {
	a := won(1, 10, "a", 2)
	judged(t, Healing, map[string]trial{
		"nobody leads":              {timeline(a, says(20, "a", Ended, 2), joins(30, "a", 4), healed(1000), later()), 1},
		"led before, and not since": {timeline(a, asks(900, 901, "a", Sure, 2), healed(1000), later()), 1},
		"somebody leads too late":   {timeline(joins(1, "a", 2), healed(1000), says(recovered+1, "a", Won, 2), later()), 1},
		"not sure is no leader":     {timeline(a, healed(1000), asks(1100, 1101, "a", NotSure, 2), later()), 1},
		"an answer to a write that came when its tenure was over": {timeline(a, says(20, "a", Ended, 2), joins(30, "a", 4), healed(1000), says(1100, "a", Acked, 2), later()), 1},
		"an answer to a write in its tenure":                      {timeline(a, healed(1000), says(1100, "a", Acked, 2), later()), 0},
		"the second time":                                         {timeline(a, healed(1000), asks(1100, 1101, "a", Sure, 2), healed(20_000), later()), 1},
		"what struck before":                                      {timeline(a, says(999, "", Struck, 0), healed(1000), later()), 1},
		"what struck afterwards":                                  {timeline(a, healed(1000), says(recovered+1, "", Struck, 0), later()), 1},
		"nobody is there":                                         {timeline(a, says(20, "a", Crashed, 0), healed(1000), later()), 0},
		"all were told to leave":                                  {timeline(a, says(20, "a", Leaving, 0), healed(1000), later()), 0},
		"somebody leads":                                          {timeline(a, healed(1000), asks(recovered-1, recovered, "a", Sure, 2), later()), 0},
		"somebody wins":                                           {timeline(joins(1, "a", 2), healed(1000), says(recovered, "a", Won, 2), later()), 0},
		"something struck":                                        {timeline(a, healed(1000), says(1001, "", Struck, 0), later()), 0},
		"somebody was stopped":                                    {timeline(a, healed(1000), says(1001, "a", Stopped, 0), later()), 0},
		"somebody was killed":                                     {timeline(a, joins(1, "b", 3), healed(1000), says(1001, "a", Crashed, 0), later()), 0},
		"the log ends before":                                     {timeline(a, healed(1000), says(1002, "", Fault, 0)), 0},
		"the time was given":                                      {given(timeline(a, healed(1000), says(recovered+1, "a", Won, 2), later())), 0},
		"the time was given, too late":                            {given(timeline(joins(1, "a", 2), healed(1000), says(recovered+1001, "a", Won, 2), later())), 1},
	})
}

// given is a second more than the usual time to recover.
func given(h *History) *History {
	h.Recovery = ms(ttl + 4000)
	return h
}

func TestQueueSettled(t *testing.T) {
	a, b := won(1, 10, "a", 0xa), joins(1, "b", 0xb)
	judged(t, Healing, map[string]trial{
		"a ghost of nobody, early":       {timeline(a, list(90, 91, 0xa, 0xc)), 1},
		"nobody's, with one of no lease": {timeline(a, joins(1, "z", 0), foreign(list(9000, 9001, 0xa))), 2},
		"a ghost of nobody":              {timeline(a, b, list(9000, 9001, 0xa, 0xb, 0xc)), 1},
		"a key that is no candidate's":   {timeline(a, b, foreign(list(9000, 9001, 0xa, 0xb))), 1},
		"a ghost of one who crashed":     {timeline(a, b, says(1000, "b", Crashed, 0), list(9000, 9001, 0xa, 0xb)), 1},
		"a ghost of one who gave up":     {timeline(a, b, says(1000, "b", Failed, 0), list(9000, 9001, 0xa, 0xb)), 1},
		"a ghost of a session before":    {timeline(a, b, says(1000, "b", Failed, 0), joins(1100, "b", 0xc), list(9000, 9001, 0xa, 0xb, 0xc)), 1},
		"a waiter without a key":         {timeline(a, b, list(9000, 9001, 0xa)), 1},
		"a leader without a key":         {timeline(a, b, list(9000, 9001, 0xb)), 1},
		"only the key of before":         {timeline(a, b, says(1000, "b", Failed, 0), joins(1100, "b", 0xc), list(9000, 9001, 0xa, 0xb)), 2}, // a ghost, and a waiter without a key
		"a leader who is not first":      {timeline(a, b, list(9000, 9001, 0xb, 0xa)), 1},
		"nothing at all":                 {timeline(a, b, list(9000, 9001)), 2},
		"in order":                       {timeline(a, b, list(9000, 9001, 0xa, 0xb)), 0},
		"empty, and nobody is there":     {timeline(list(9000, 9001)), 0},
		"just crashed":                   {timeline(a, b, says(8000, "b", Crashed, 0), list(9000, 9001, 0xa, 0xb)), 0},
		"crashed long ago":               {timeline(a, b, says(1000, "b", Crashed, 0), list(9000, 9001, 0xa)), 0},
		"just joined":                    {timeline(a, joins(8999, "b", 0xb), list(9000, 9001, 0xa)), 0},
		"joined while it was asked for":  {timeline(a, joins(9001, "b", 0xb), list(9000, 9002, 0xa, 0xb)), 0},
		"just won":                       {timeline(b, won(1, 8999, "a", 0xa), list(9000, 9001, 0xb, 0xa)), 0},
		"a new session":                  {timeline(a, b, says(1000, "b", Failed, 0), joins(1100, "b", 0xc), list(9000, 9001, 0xa, 0xc)), 0},
	})
}

func foreign(q []Event) []Event {
	q[0].Keys = append(q[0].Keys, "e/by hand")
	return q
}
