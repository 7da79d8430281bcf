package service

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Election is the name of the election that the nodes stand in.
const Election = "shop"

// stage is the plan of a play, and what it has beside its environment: the client that asks
// the nodes, what that was told, and what etcd says happened.
//
// Its methods are for one goroutine, but for note.
type stage struct {
	*scenario.Env[Fact]
	cfg      Config
	nodes    []*node // the newest process of each
	client   *client
	attempts story.History[Attempt]
	evidence []Change
	acts     []ActRow // of the acts that are over
	// said is what each node reported last, so that it need not be told again.
	said map[string]string
}

// node is one node's process.
type node = scenario.Participant

// Run plays: see scenario.Run. It returns ErrInvalid before anything was started.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.check()
	if err != nil {
		return err
	}
	s := &stage{cfg: cfg, nodes: make([]*node, nodes), said: make(map[string]string)}
	s.client = newClient(cfg.patience(), s.note)
	return scenario.Run(ctx, cfg.Config, s)
}

// Open takes the environment.
func (s *stage) Open(env *scenario.Env[Fact]) error {
	s.Env = env
	return nil
}

// Close ends the client.
func (s *stage) Close() { s.client.close() }

// note records what became of a request. Safe for concurrent use.
func (s *stage) note(a Attempt) {
	s.attempts.Add(a)
	s.Note(a, a.line())
}

// start starts a node's process that talks to its own member only, and blocks until it
// listens and the client knows where.
func (s *stage) start(ctx context.Context, index int) error {
	name := fmt.Sprintf("n%d", index+1)
	s.Tell(Fact{Kind: Acted, Act: Start, Node: name, Member: s.Member(index).Name})
	n, f, err := s.Start(ctx, name, index, func(f Fact) bool { return f.Node == name && f.Kind == Listening }, "service", "node", Election)
	if err != nil {
		return err
	}
	s.nodes[index] = n
	return s.client.reach(index, name, f.Address)
}

// Introduction tells what is about to happen.
func (s *stage) Introduction() string {
	rounds := "each act once"
	if s.cfg.Rounds > 1 {
		rounds = fmt.Sprintf("%d rounds of acts", s.cfg.Rounds)
	}
	return fmt.Sprintf("eldest service: an etcd cluster of %d members, %d nodes of a key-value service, leases of %v; %s, seed %d",
		nodes, nodes, s.cfg.TTL, rounds, s.cfg.Seed)
}
