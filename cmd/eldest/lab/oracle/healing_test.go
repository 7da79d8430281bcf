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

// Where the queue is listed while faults go on, what is wrong once may be under way.
func TestQueueAgainAndAgain(t *testing.T) {
	a, b := won(1, 10, "a", 0xa), joins(1, "b", 0xb)
	looks := func(events ...[]Event) *History {
		h := timeline(events...)
		h.Looks = 3
		return h
	}
	// lists are some of one queue, a second apart, the last at 9000.
	lists := func(n int, leases ...int64) (all []Event) {
		for i := range n {
			all = append(all, list(9000-1000*i, 9001-1000*i, leases...)...)
		}
		return all
	}
	left := func(at int, who string, lost bool) []Event {
		e := says(at, who, Exited, 0)
		e[0].Lost = lost
		return e
	}
	judged(t, Healing, map[string]trial{
		"all is well":                   {looks(a, b, lists(9, 0xa, 0xb)), 0},
		"missing":                       {looks(a, b, lists(3, 0xa)), 1},
		"missing for long is one fault": {looks(a, b, lists(9, 0xa)), 1},
		"missing, and in between not":   {looks(a, b, lists(2, 0xa), list(6000, 6001, 0xa, 0xb), list(5000, 5001, 0xa), list(4000, 4001, 0xa)), 0},
		"missing since just now":        {looks(a, b, lists(2, 0xa)), 0},
		"missing in the end":            {looks(a, b, list(1000, 1001, 0xa, 0xb), lists(3, 0xa)), 1},
		"joined in the last question":   {looks(a, joins(7001, "b", 0xb), lists(3, 0xa)), 0},
		"told to leave, and missing":    {looks(a, b, says(100, "b", Leaving, 0), lists(9, 0xa)), 0},
		"told to leave, and there":      {looks(a, b, says(100, "b", Leaving, 0), says(200, "b", Failed, 0), lists(9, 0xa, 0xb)), 0},
		"told to leave, and joined":     {looks(a, b, says(100, "b", Leaving, 0), joins(200, "b", 0xb), lists(3, 0xa)), 1},
		"strange":                       {looks(a, b, lists(3, 0xa, 0xb, 0xc)), 1},
		"strange since just now":        {looks(a, b, lists(2, 0xa, 0xb, 0xc)), 0},
		"given up, and still there":     {looks(a, b, says(100, "b", Failed, 0), lists(3, 0xa, 0xb)), 1},
		"gone, and still there":         {looks(a, b, says(100, "b", Leaving, 0), left(200, "b", false), lists(3, 0xa, 0xb)), 1},
		"gone, since just now":          {looks(a, b, left(6500, "b", false), lists(2, 0xa, 0xb)), 0},
		"left without a word":           {looks(a, b, left(5000, "b", true), lists(4, 0xa, 0xb)), 0},
		"left long ago":                 {looks(a, b, left(3500, "b", true), lists(4, 0xa, 0xb)), 1},
		"a leader who is not first":     {looks(a, b, lists(3, 0xb, 0xa)), 1},
		"first, and does not lead":      {looks(b, lists(7, 0xb)), 1},
		"first for long, not always":    {looks(b, joins(2, "c", 0xc), list(3000, 3001, 0xb, 0xc), lists(2, 0xc), lists(5, 0xb, 0xc)[2:]), 0},
		"first, for not so long":        {looks(b, lists(6, 0xb)), 0},
		"first, and just won":           {looks(joins(1, "a", 0xa), says(8999, "a", Won, 0xa), lists(9, 0xa)), 1},
		"first, and led until just now": {looks(a, says(8999, "a", Ended, 0xa), lists(9, 0xa)), 0},
		"first again, in another life":  {timeline(a, list(1000, 1001, 0xa), says(2000, "a", Ended, 0xa), joins(8900, "a", 0xa), list(9000, 9001, 0xa)), 0},
		"nobody is first":               {looks(lists(9)), 0},
		"first of settled ones":         {timeline(b, joins(1, "a", 0xa), list(1000, 1001, 0xb), list(9000, 9001, 0xb, 0xa)), 1},
	})
}

func foreign(q []Event) []Event {
	q[0].Keys = append(q[0].Keys, "e/by hand")
	return q
}
