package core

import "github.com/eldest-io/eldest"

// Effects are the actions after a step. The loop carries them out in the order of the fields: the
// leading context ends before anything is sent (G3), and the keys that a request may change are
// watched before its reply arrives.
type Effects struct {
	// Ended is the token of the candidacy that has ended, with Cause; 0: none has. Its context ends
	// first.
	Ended eldest.Token
	// Drained is true if the leading context ends although the key stays.
	Drained bool
	Cause   error
	// Registered is the token of a candidacy that begins, at Position.
	Registered eldest.Token
	// Won is the token with which the candidate leads from now on.
	Won eldest.Token
	// Send is the request to send. It replaces a Look that is under way.
	Send Ask
	// Pause is true if Due is to come after a pause.
	Pause bool
}

// Watch is the set of keys to watch.
type Watch struct {
	// Key is the life of the candidate's key to watch; 0: none.
	Key eldest.Token
	// Late is true if the candidate's key is watched although it does not exist: see
	// Candidate.Owed.
	Late bool
	// Elder is the older key to watch; the zero value: none.
	Elder Elder
}

// Watches returns the keys that a candidate in this state watches.
func (c *Candidate) Watches() Watch {
	var w Watch
	switch c.Phase {
	case Waiting:
		if c.Want != Queue { // else the candidate does not need its deletion
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

// Exists reports whether a candidacy continues: its key exists and was not given up.
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
