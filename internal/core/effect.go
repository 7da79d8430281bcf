package core

import "github.com/eldest-io/eldest"

// Effects are what has to be done after a step. The loop carries them out in the order of
// the fields: the leading context ends before anything is sent (G3), and what a request
// may change is watched by the time of its reply.
type Effects struct {
	// Ended says that the candidacy with this token has ended, with Cause. Its context
	// ends first. 0: none has.
	Ended eldest.Token
	// Drained says that the leading context ends although the key stays.
	Drained bool
	Cause   error
	// Registered says that a candidacy begins, at Position.
	Registered eldest.Token
	// Won says that the candidate leads from now on.
	Won eldest.Token
	// Send is the request to send. A Look that is under way is replaced.
	Send Ask
	// Pause says that Due is to come after a pause.
	Pause bool
}

// Watch says which keys are to be watched.
type Watch struct {
	// Key is the life of the candidate's own key that is watched; 0: none.
	Key eldest.Token
	// Late says that the candidate's key is watched although there is none: see Candidate.Owed.
	Late bool
	// Elder is the older key that is watched; the zero value: none.
	Elder Elder
}

// Watches is what a candidate in this state watches.
func (c *Candidate) Watches() Watch {
	var w Watch
	switch c.Phase {
	case Waiting:
		if c.Want != Queue { // else nobody waits for the news
			w.Elder = c.Position.Elders[0]
		}
		w.Key = c.Token
	case Proving:
		w.Key = c.Token
	case Leading, Draining:
		if !c.Unwatched {
			w.Key = c.Token
		}
	case Idle:
		w.Late = c.Owed
	case Entering, Leaving, Lost:
	}
	return w
}

// Exists reports whether a candidacy goes on: its key exists and was not given up.
func (c *Candidate) Exists() bool { return Waiting <= c.Phase && c.Phase <= Draining }

// between derives the effects of a step.
func between(before, after *Candidate) Effects {
	var e Effects
	if before.Exists() && (!after.Exists() || after.Token != before.Token) {
		e.Ended, e.Cause = before.Token, after.Cause
	}
	if before.Phase == Leading && after.Phase == Draining {
		e.Drained, e.Cause = true, after.Cause
	}
	if after.Exists() && after.Token != before.Token {
		e.Registered = after.Token
	}
	if after.Phase == Leading && before.Phase != Leading {
		e.Won = after.Token
	}
	switch {
	case after.Asked.Request == None:
	case after.Paused:
		e.Pause = !before.Paused
	case before.Paused || before.Asked != after.Asked:
		e.Send = after.Asked
	}
	return e
}
