package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// scene is one act of the play, with what the audience should look for.
type scene struct {
	title string
	why   []string
	play  func(context.Context, *stage) error
	// members is how many the act needs.
	members int
}

// script is one round. Six candidates leave from the front of the queue in it; memberFor and beating
// count on that.
var script = []scene{
	{"The leader resigns", []string{
		"It stops leading, then deletes its own key. The deletion wakes the next one, so nobody waits for a lease.",
	}, resign, 1},
	{"A waiter leaves", []string{
		"The one behind it is woken. That is no victory: somebody older still stands. It waits for that one now.",
	}, withdraw, 1},
	{"The leader is killed", []string{
		"No farewell this time. But its key is bound to its lease: etcd deletes it when the lease has run out.",
	}, kill, 1},
	{"A leader with heartbeats is killed", []string{
		"The same, but this one and the next beat: a leader writes a key four times in --heartbeat. The one behind it hears",
		"nothing for that long, and deletes the leader's key itself. A leader to which etcd confirms no beat stops before that.",
	}, kill, 1},
	{"Somebody deletes the leader's key", []string{
		"A leader watches its own key, so it knows within milliseconds. So does the next one, and which of the two hears",
		"first is chance. That is what the guard is for: from the deletion on the old token opens nothing.",
	}, remove, 1},
	{"The leader's member is cut off", []string{
		"It cannot renew its lease. It counts from when it SENT its last renewal, etcd from when that one arrived, and it",
		"keeps a margin: it has stopped before etcd lets anybody else win. In between nobody leads, which is the point.",
	}, partition, 3},
}

// pause is the time between scenes for those who read along; programs need none.
func (s *stage) pause(ctx context.Context) error {
	if s.JSON {
		return ctx.Err()
	}
	return scenario.Sleep(ctx, s.TTL/2)
}

// step plays a scene, and settles it.
func (s *stage) step(ctx context.Context, sc scene) error {
	return s.Step(sc.title, sc.why, func() error {
		if err := sc.play(ctx, s); err != nil {
			return err
		}
		return s.settle(ctx)
	})
}

// Perform plays everything, until it is over, something does not come to its end, or
// ctx does.
func (s *stage) Perform(ctx context.Context) error {
	begin := time.Now()
	err := s.step(ctx, scene{"The candidates line up", []string{
		"Each is a process that holds a lease in etcd and a key bound to that lease. The eldest key leads, the others",
		"queue up behind it.",
	}, lineUp, 1})
	for round := 0; err == nil && s.again(round, begin); round++ {
		for _, sc := range script {
			if err != nil || s.cfg.Duration > 0 && time.Since(begin) >= s.cfg.Duration {
				break
			}
			if sc.members <= s.cfg.Members {
				if err = s.pause(ctx); err == nil {
					err = s.step(ctx, sc)
				}
			} else if round == 0 {
				s.Say("", fmt.Sprintf("   Left out: %q needs %d members; see --members", sc.title, sc.members))
			}
		}
	}
	if err == nil {
		err = s.pause(ctx)
	}
	if err != nil {
		return err
	}
	return s.step(ctx, scene{"Everyone leaves", []string{"What nobody needs any more must not stay: no key, no lease."}, leave, 1})
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
	_, err := s.awaitLeader(ctx)
	return err
}

// settle ends a scene: the observer gets the time to see what the candidates
// report, the hand-over is told, and newcomers fill the queue.
func (s *stage) settle(ctx context.Context) error {
	f := Fact{Kind: Settled}
	if leader, err := s.leader(); err == nil {
		f.Actor, f.Key, f.Token = leader.actor, leader.key, leader.token
	}
	err := s.Await(ctx, "the observer agrees", func(facts []Fact) bool {
		seen := scenario.Last(facts, func(f Fact) bool { return f.Kind == Observed })
		return seen != nil && seen.State != eldest.Unknown.String() && seen.Key == f.Key && seen.Token == f.Token
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	// An observer that does not agree is for the checks to find.
	s.Tell(f)
	if f.Token > 0 {
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
	// The lines of the newcomers may still be under way.
	if err := scenario.Sleep(ctx, story.SettleTime); err != nil {
		return err
	}
	return s.picture(ctx)
}

// tellHandover tells the newest hand-over, if there is one that was not told yet.
func (s *stage) tellHandover() {
	changes := handovers(s.History.Facts())
	if len(changes) == s.handovers {
		return
	}
	s.handovers = len(changes)
	c := changeWords(changes[len(changes)-1])
	s.Say(fmt.Sprintf("%shand-over: %s, %s after %s; %s", scenario.Margin, c.who, s.Style.Paint(story.Bold, c.took), c.why, c.tail))
}
