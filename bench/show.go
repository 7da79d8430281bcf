package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// show is an election with a leader and with crowds that look on. It lasts for many
// turns, until it is closed.
type show struct {
	contender, election string
	// stage is the host of the candidates; stalls are those of the crowds, so that
	// what is counted on them is the observers' own.
	stage  Host
	stalls []Host
	crowds []Crowd
	queue  *referee
	// leader leads; sessions are its own and, during a change, the successor's.
	leader   Candidate
	sessions []Session
}

// openShow has a candidate lead and gathers observers, on one host in this process or
// on one in each of so many others.
func (t *turn) openShow(ctx context.Context, processes int, size CrowdSize) (s *show, err error) {
	s = &show{contender: t.contender, election: t.election()}
	defer func() {
		if err != nil {
			s.close(t.last)
		}
	}()
	if s.stage, err = newLocal(t.site); err != nil {
		return s, err
	}
	if s.queue, err = t.referee(ctx, s.election); err != nil {
		return s, err
	}
	if s.leader, err = s.candidate(ctx); err != nil {
		return s, err
	}
	if _, err = lead(ctx, s.leader); err != nil {
		return s, err
	}
	stalls := max(min(processes, size.Observers), 1) // none is empty
	for i := range stalls {
		h, err := t.stall(ctx, processes > 0)
		if err != nil {
			return s, err
		}
		s.stalls = append(s.stalls, h)
		c, err := h.Observe(ctx, s.contender, s.election, size.share(i, stalls))
		if err != nil {
			return s, err
		}
		s.crowds = append(s.crowds, c)
	}
	_, err = s.await(ctx)
	return s, err
}

// stall is a new host, in a process of its own or in this one, whatever the options say
// of others.
func (r *run) stall(ctx context.Context, process bool) (Host, error) {
	if process {
		return spawn(ctx, r.site)
	}
	return newLocal(r.site)
}

// share is the i-th of n parts that are as equal as can be.
func (s CrowdSize) share(i, n int) CrowdSize {
	part := func(of int) int { return of*(i+1)/n - of*i/n }
	return CrowdSize{Observers: part(s.Observers), Slow: part(s.Slow)}
}

// candidate makes one that does not stand yet.
func (s *show) candidate(ctx context.Context) (Candidate, error) {
	session, err := s.stage.Open(ctx, s.contender, showTTL)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	s.sessions = append(s.sessions, session)
	return session.Candidate(s.election, "")
}

// await blocks until all crowds know the leader.
func (s *show) await(ctx context.Context) (Seen, error) {
	seen, errs := make([]Seen, len(s.crowds)), make([]error, len(s.crowds))
	var all sync.WaitGroup
	for i, c := range s.crowds {
		all.Go(func() { seen[i], errs[i] = c.Await(ctx, s.leader.Key()) })
	}
	all.Wait()
	total := seen[0]
	for _, one := range seen[1:] {
		if one.First.Before(total.First) {
			total.First = one.First
		}
		if one.Last.After(total.Last) {
			total.Last = one.Last
		}
	}
	return total, errors.Join(errs...)
}

// close ends the show, as far as it ever began.
func (s *show) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range s.crowds {
		all.Go(func() { c.Close(ctx) })
	}
	all.Wait()
	for _, session := range s.sessions {
		_ = session.Close(ctx) // at the latest its lease runs out
	}
	if s.queue != nil {
		s.queue.cancel()
	}
	for _, h := range append(s.stalls, s.stage) {
		if h != nil {
			_ = h.Close() // what was measured is safe
		}
	}
}
