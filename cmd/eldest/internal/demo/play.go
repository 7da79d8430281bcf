package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
)

// scene is one act of the play, with what the audience should look for.
type scene struct {
	title string
	why   []string
	play  func(context.Context, *stage) error
}

// script is one round. Five candidates leave from the front of the queue in it;
// memberFor counts on that.
var script = []scene{
	{"The leader resigns", []string{
		"It says so itself: it stops leading, then it deletes its key. The next one is woken by the deletion,",
		"so nobody waits for a lease.",
	}, resign},
	{"A waiter leaves", []string{
		"The one behind it is woken. That is no victory: somebody older still stands. It waits for that one now.",
	}, withdraw},
	{"The leader is killed", []string{
		"SIGKILL: no farewell. Its key is bound to its lease, and etcd deletes it when the lease has run out.",
	}, kill},
	{"Somebody deletes the leader's key", []string{
		"A leader watches its own key. It knows within milliseconds, and so does the next one; which of the two",
		"hears first is chance, and that is what the guard is for: the old token is worth nothing already.",
	}, remove},
	{"The leader's member is cut off", []string{
		"The leader cannot renew its lease. It counts from when it SENT its last renewal, etcd from when that arrived,",
		"and it keeps a margin: so it stops leading before etcd lets anyone else win. For a while nobody leads.",
	}, partition},
}

// beat is the pause between scenes, for those who read along.
const beat = 700 * time.Millisecond

// play plays everything, until it is over, something does not come to its end, or
// ctx does.
func (s *stage) play(ctx context.Context) error {
	begin := time.Now()
	number := 0
	run := func(sc scene) error {
		number++
		s.heading(number, sc)
		err := sc.play(ctx, s)
		if err == nil {
			err = s.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", sc.title, err)
		}
		return sleep(ctx, beat)
	}

	err := run(scene{fmt.Sprintf("%s stand", count(s.cfg.Candidates, "candidate")), []string{
		"Each is a process with a lease in etcd and a key bound to it. The eldest key leads, all others queue up behind it.",
	}, lineUp})
	for round := 0; err == nil && s.again(round, begin); round++ {
		for _, sc := range script {
			if err != nil || s.cfg.Duration > 0 && time.Since(begin) >= s.cfg.Duration {
				break
			}
			if len(s.clients) == 1 && sc.title == script[len(script)-1].title {
				if round == 0 {
					s.aside("(with one member nothing can be cut off; try --members 3)")
				}
				continue
			}
			err = run(sc)
		}
	}
	if err != nil {
		return err
	}
	return run(scene{"Everyone leaves", []string{"What nobody needs any more must not stay: no key, no lease."}, leave})
}

// again reports whether another round is to be played.
func (s *stage) again(round int, begin time.Time) bool {
	if s.cfg.Duration == 0 {
		return round == 0
	}
	return time.Since(begin) < s.cfg.Duration
}

func lineUp(ctx context.Context, s *stage) error {
	if err := s.fill(ctx); err != nil {
		return err
	}
	return s.await(ctx, "somebody leads", s.cfg.limits().Expiry, func(facts []Fact) bool {
		return last(facts, func(f Fact) bool { return f.Kind == Won }) != nil
	})
}

// settle ends a scene: the observer gets the time to see what the candidates
// report, the hand-over is told, and newcomers fill the queue.
func (s *stage) settle(ctx context.Context) error {
	f := Fact{Kind: Settled}
	if leader, err := s.leader(); err == nil {
		f.Actor, f.Key, f.Token = leader.actor, leader.key, leader.token
	}
	err := s.await(ctx, "the observer agrees", s.cfg.limits().Expiry, func(facts []Fact) bool {
		seen := last(facts, func(f Fact) bool { return f.Kind == Observed })
		return seen != nil && seen.State != eldest.Unknown.String() && seen.Key == f.Key && seen.Token == f.Token
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	// An observer that does not agree is for the checks to find.
	f.At = time.Now()
	s.tell(f)
	s.tellHandover()
	if f.Token > 0 {
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
	// The lines of the newcomers may still be under way.
	if err := sleep(ctx, settleTime); err != nil {
		return err
	}
	return s.picture(ctx)
}

func (s *stage) heading(number int, sc scene) {
	if !s.cfg.JSON {
		s.narrator.scene(number, sc.title, sc.why...)
	}
}

// aside says something that is no fact of the election.
func (s *stage) aside(format string, args ...any) {
	if !s.cfg.JSON {
		s.tape.at(time.Now(), s.cfg.Style.paint(dim, fmt.Sprintf("%-9s %s", "", fmt.Sprintf(format, args...))))
	}
}

// tellHandover tells the newest hand-over, if there is one that was not told yet.
func (s *stage) tellHandover() {
	changes := handovers(s.history.Facts())
	if s.cfg.JSON || len(changes) == s.handovers {
		return
	}
	s.handovers = len(changes)
	s.tape.say(changeWords(s.cfg.Style, changes[len(changes)-1]))
}

// sleep waits; ctx ends it, with its cause.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run plays a demo, from an empty machine to an empty machine: it blocks until the
// play and the summary are over or ctx ends, and leaves neither a process nor a
// file. Errors: ErrInvalid before anything was started; ErrViolated; ctx's cause,
// without a summary; or why the cluster did not start.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.check()
	if err != nil {
		return err
	}
	s, err := newStage(ctx, cfg)
	if err != nil {
		return err
	}
	s.opening()
	broken := s.play(ctx)
	// What happens from here on is our own doing.
	facts := s.history.Facts()
	err = s.close()
	if ctx.Err() != nil {
		s.aside("interrupted: all processes are ended, all data is removed, nothing was judged")
		s.tape.flush()
		return errors.Join(context.Cause(ctx), err)
	}
	return errors.Join(s.summary(facts, broken), err)
}
