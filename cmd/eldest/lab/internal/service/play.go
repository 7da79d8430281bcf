package service

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

// scene is one act of the play, with what the audience should look for.
type scene struct {
	title string
	why   []string
	play  func(context.Context, *stage) error
}

// opening is played once, at the beginning.
var opening = scene{"Three nodes, each with an etcd member of its own", []string{
	"Each node takes requests. One of them leads and answers; the others pass requests on to it. A client that knows",
	"nothing of leaders begins to write, append, delete and read, each time through a node drawn at random.",
}, gather}

const suspended = "The leader is suspended, and deposed in its sleep"

// script is one round.
var script = []scene{
	{"The leader is told to stop", []string{
		"It begins nothing new, finishes what it has begun, and deletes its key: the next one leads a round trip later.",
		"Its port is gone until its next process listens: what the client sends there meanwhile does not leave the client.",
	}, stop},
	{"The leader is killed", []string{
		"Its key stays until its lease has run out, and until then nobody leads in its place. Whether what was under way",
		"at it was done, nobody knows: the client is told that it can try again, and that nobody has tried for it.",
	}, kill},
	{suspended, []string{
		"The whole process stops, in the middle of whatever it does; an operator deletes its key; another node leads. When",
		"it goes on, its lease is good and its clock tells it nothing, and requests have piled up before it. But each write",
		"and each read says: only if my key has my token. It has not, and etcd refuses.",
	}, suspend},
	{"The leader's etcd member is cut off", []string{
		"The leader still hears every request, from the other nodes too, but cannot write. It stops leading by its own",
		"clock before etcd lets anybody else win.",
	}, cutLeader},
	{"A follower's etcd member is cut off", []string{
		"A node that does not know any more who leads lets requests wait, as long as they want to. The others go on.",
	}, cutFollower},
}

// closing is played once, at the end.
var closing = scene{"Everyone leaves", []string{"The client stops asking, then the nodes end, the leader last."}, leave}

// interval is the time between scenes: the client goes on, and somebody may be reading.
func (s *stage) interval(ctx context.Context) error { return scenario.Sleep(ctx, s.TTL/3) }

// acts are the scenes of all rounds: the script, and from the second round on its scenes in an
// order that seed decides. What the system cannot do is left out.
func acts(rounds int, seed uint64) (all []scene) {
	order := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		acts := slices.DeleteFunc(slices.Clone(script), func(sc scene) bool { return sc.title == suspended && !offspring.Suspends })
		if round > 0 {
			order.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		}
		all = append(all, acts...)
	}
	return all
}

// step plays a scene.
func (s *stage) step(ctx context.Context, sc scene) error {
	return s.Step(sc.title, sc.why, func() error { return sc.play(ctx, s) })
}

// play plays everything, until it is over, something does not come to its end, or
// ctx does.
func (s *stage) play(ctx context.Context) error {
	if err := s.step(ctx, opening); err != nil {
		return err
	}
	for _, sc := range acts(s.cfg.Rounds, s.cfg.Seed) {
		if err := s.interval(ctx); err != nil {
			return err
		}
		if err := s.step(ctx, scene{sc.title, sc.why, func(ctx context.Context, s *stage) error {
			began := time.Now()
			if err := sc.play(ctx, s); err != nil {
				return err
			}
			return s.settle(ctx, began)
		}}); err != nil {
			return err
		}
	}
	if err := s.interval(ctx); err != nil {
		return err
	}
	return s.step(ctx, closing)
}

// Perform plays, and collects what etcd says of it.
func (s *stage) Perform(ctx context.Context) error {
	broken := s.play(ctx)
	if ctx.Err() != nil {
		s.client.abort() // nobody waits for answers that nobody judges
		return context.Cause(ctx)
	}
	s.client.halt() // unless the play came to its end
	var err error
	if s.evidence, err = Changes(ctx, s.Client()); broken == nil {
		broken = err
	}
	return broken
}

// gather starts the nodes one by one, so that the first one leads, and the client when
// they all agree.
func gather(ctx context.Context, s *stage) error {
	for i := range nodes {
		if err := s.start(ctx, i); err != nil {
			return err
		}
		if err := s.hasPlace(ctx, s.nodes[i]); err != nil {
			return err
		}
	}
	if _, err := s.agreed(ctx); err != nil {
		return err
	}
	s.client.run(s.cfg.Seed)
	return s.settle(ctx, time.Now())
}

// settle ends a scene: all nodes agree, the client has asked often enough since the
// scene began, and then each node has answered.
func (s *stage) settle(ctx context.Context, began time.Time) error {
	if _, err := s.agreed(ctx); err != nil {
		return err
	}
	if err := s.awaitAttempts(ctx, "the client asks", 4*enough, func(a Attempt) bool { return a.Begin.After(began) }); err != nil {
		return err
	}
	t, err := s.agreed(ctx) // still, or again
	if err != nil {
		return err
	}
	// From here on nothing belongs to the scene. What does may not be over yet.
	f := Fact{At: time.Now(), Kind: Settled, Node: t.Name, Key: t.key, Token: t.token}
	over := s.client.elapsed()
	s.Tell(f)
	// A node that does not answer is for the checks to find.
	answered := make(map[string]bool)
	_ = s.awaitAttempts(ctx, "every node answers", nodes, func(a Attempt) bool {
		fresh := a.Outcome == Done && !a.Begin.Before(f.At) && !answered[a.Node]
		answered[a.Node] = answered[a.Node] || fresh
		return fresh
	})
	select {
	case <-over: // it takes no longer than the most patient request
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.tally()
	return nil
}
