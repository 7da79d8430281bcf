package explore

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// won judges a win: G1, G2 and G3.
func (w *world) won(i int, token eldest.Token) error {
	at := w.parts[i].state.Position.Revision
	own := w.at(i, at)
	if own == nil || own.token != token {
		return fmt.Errorf("G1: %s leads with %d, and has no such key at revision %d", key(i), token, at)
	}
	if p := w.position(token, at); len(p.Elders) > 0 {
		return fmt.Errorf("G1: %s leads with %d, and %v was older at revision %d", key(i), token, p.Elders, at)
	}
	if own.won {
		return fmt.Errorf("G2: %s leads with %d a second time", key(i), token)
	}
	own.won = true
	if token < w.newest && !own.byHand { // a removed key may be news to its leader
		return fmt.Errorf("G2: %s leads with %d after %d", key(i), token, w.newest)
	}
	for j := range w.parts {
		if other := w.parts[j].leading; other > 0 && !w.of(other).byHand && !own.byHand {
			return fmt.Errorf("G3: %s leads with %d while %s leads with %d", key(i), token, key(j), other)
		}
	}
	return nil
}

// kept judges what etcd holds: nobody but a hand deletes the key of a candidate that leads.
func (w *world) kept() error {
	for i := range w.parts {
		if token := w.parts[i].leading; token > 0 {
			if l := w.of(token); l.deleted > 0 && !l.byHand {
				return fmt.Errorf("G3: the key of %s, which leads with %d, is deleted by a request of its own", key(i), token)
			}
		}
	}
	return nil
}

// settled judges a world in which nothing happens by itself any more: G5 and G8.
func (w *world) settled() error {
	var oldest *life
	for i := range w.lives {
		if l := &w.lives[i]; l.deleted == 0 {
			oldest = l
			break
		}
	}
	for i := range w.parts {
		s := w.parts[i].state
		own := w.alive(i)
		switch s.Phase {
		case core.Idle:
			if own != nil {
				return fmt.Errorf("G8: the key of %s is left", key(i))
			}
		case core.Entering, core.Proving, core.Leaving:
			return fmt.Errorf("G5: %s stays %v for ever", key(i), s.Phase)
		case core.Waiting:
			if own == nil || own == oldest && s.Want != core.Queue {
				return fmt.Errorf("G5: %s waits for ever for %v", key(i), s.Position.Elders)
			}
		case core.Leading, core.Draining:
			if own != oldest {
				return fmt.Errorf("G1: %s is %v, and not the oldest", key(i), s.Phase)
			}
		case core.Lost:
		}
	}
	return nil
}
