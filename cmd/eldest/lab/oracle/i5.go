package oracle

// standing is what a participant says of itself at the moment of judgement.
type standing struct {
	lease int64
	token int64 // 0: waits
}

// I5 checks: at quiescence (the first Quiet event) nobody waits while nobody older
// lives. The oldest key belongs to somebody who leads by it, every key belongs
// to somebody, and whoever waits or leads has a key. At all times, nobody has a
// key for long who does not stand (G8).
func I5(h *History) []Violation {
	out := ghosts(h)
	quiet, now := judgement(h)
	if quiet == nil {
		return out
	}
	q := h.queue()
	owner := map[int64]string{}
	for who, s := range now {
		owner[s.lease] = who
	}
	has := map[string]bool{}
	first := true
	for _, l := range q.lives {
		if !l.aliveAt(quiet.Rev) {
			continue
		}
		who, ok := owner[l.lease]
		switch {
		case !ok:
			out = append(out, violated("I5", quiet.At, "key %s (create %d) belongs to nobody: a ghost", l.key, l.create))
		case first && now[who].token == 0:
			out = append(out, violated("I5", quiet.At, "%s waits although its key (create %d) is the oldest", who, l.create))
		case !first && now[who].token != 0:
			out = append(out, violated("I5", quiet.At, "%s leads (token %d) although older keys live", who, now[who].token))
		case first && now[who].token != l.create:
			out = append(out, violated("I5", quiet.At, "%s leads by token %d, its key has create revision %d", who, now[who].token, l.create))
		}
		has[who], first = true, false
	}
	for who, s := range now {
		if !has[who] && s.token != 0 {
			out = append(out, violated("I5", quiet.At, "%s leads (token %d) without a key", who, s.token))
		} else if !has[who] {
			out = append(out, violated("I5", quiet.At, "%s waits without a key: it can never lead", who))
		}
	}
	return out
}

// judgement finds the Quiet event and who waits or leads at it.
func judgement(h *History) (quiet *Event, now map[string]standing) {
	now = map[string]standing{}
	for i := range h.Events {
		e := &h.Events[i]
		switch e.Kind {
		case Quiet:
			return e, now
		case Joined:
			now[e.Who] = standing{lease: e.Lease}
		case Won, Resumed:
			now[e.Who] = standing{lease: now[e.Who].lease, token: e.Token}
		case Suspended:
			now[e.Who] = standing{lease: now[e.Who].lease}
		case Failed, Ended, Crashed:
			delete(now, e.Who)
		}
	}
	return nil, nil
}
