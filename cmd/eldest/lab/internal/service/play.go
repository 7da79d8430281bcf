package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
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
func (s *stage) interval(ctx context.Context) error { return sleep(ctx, s.cfg.TTL/3) }

// play plays everything, until it is over, something does not come to its end, or
// ctx does.
func (s *stage) play(ctx context.Context) error {
	number := 0
	run := func(sc scene) error {
		number++
		if !s.cfg.JSON {
			s.narrator.scene(number, sc.title, sc.why...)
		}
		if err := sc.play(ctx, s); err != nil {
			return fmt.Errorf("%q: %w", sc.title, err)
		}
		return nil
	}
	if err := run(opening); err != nil {
		return err
	}
	order := rand.New(rand.NewPCG(s.cfg.Seed, 0))
	for round := range s.cfg.Rounds {
		acts := slices.DeleteFunc(slices.Clone(script), func(sc scene) bool { return sc.title == suspended && !offspring.Suspends })
		if round > 0 {
			order.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		}
		for _, sc := range acts {
			if err := s.interval(ctx); err != nil {
				return err
			}
			if err := run(scene{sc.title, sc.why, func(ctx context.Context, s *stage) error {
				began := time.Now()
				if err := sc.play(ctx, s); err != nil {
					return err
				}
				return s.settle(ctx, began)
			}}); err != nil {
				return err
			}
		}
	}
	if err := s.interval(ctx); err != nil {
		return err
	}
	return run(closing)
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
	f := Fact{At: time.Now().Round(0), Kind: Settled, Node: t.name, Key: t.key, Token: t.token}
	over := s.client.elapsed()
	s.tell(f)
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

// aside says something that is no fact of the play.
func (s *stage) aside(format string, args ...any) {
	if !s.cfg.JSON {
		s.narrator.aside(fmt.Sprintf(format, args...))
	}
}

// Run plays, from an empty machine to an empty machine: it blocks until the play and
// the summary are over or ctx ends, and leaves neither a process nor a file. Errors:
// ErrInvalid before anything was started; ErrViolated; ctx's cause, without a summary;
// or why the cluster did not start.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.check()
	if err != nil {
		return err
	}
	// Whoever reads the story may go away, as in "eldest service | head".
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg.Out = &story.Lively{Out: cfg.Out, Gone: cancel}

	s, err := newStage(ctx, cfg)
	if err != nil {
		return err
	}
	s.introduce()
	broken := s.play(ctx)
	if ctx.Err() != nil {
		s.client.abort() // nobody waits for answers that nobody judges
	}
	s.client.halt() // unless the play came to its end
	evidence, err := s.collect(ctx)
	if broken == nil {
		broken = err
	}
	// What happens from here on is our own doing.
	facts, attempts := s.history.Facts(), s.attempts.Facts()
	left := s.close()
	if ctx.Err() != nil {
		s.aside("interrupted: %s; nothing was judged", endWords(left))
		s.tape.Flush()
		return errors.Join(context.Cause(ctx), left)
	}
	return s.summary(facts, attempts, evidence, broken, left)
}

// collect reads the evidence from a member that is not cut off.
func (s *stage) collect(ctx context.Context) ([]Change, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return Changes(ctx, s.member())
}
