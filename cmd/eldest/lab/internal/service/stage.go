package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Election is the name of the election that the nodes stand in.
const Election = "shop"

// stage is all that a play needs: cluster, nodes, the client that asks them.
//
// Its methods are for one goroutine, but for tell and note.
type stage struct {
	cfg     Config
	cluster *etcdtest.Cluster
	etcd    []*clientv3.Client // one for each member
	isCut   []bool

	spawner *offspring.Spawner
	nodes   []*node // the newest process of each
	ended   []*node // those before
	client  *client

	history  story.History[Fact]
	attempts story.History[Attempt]
	acts     []ActRow // of the acts that are over
	tape     *story.Tape
	narrator *narrator
	lines    story.Lines // of JSON
}

// The members' timeouts: long enough for a busy machine, short enough for leases of
// two seconds, which no fault of one member must cost (TTL >= 4 election timeouts).
const (
	heartbeat    = 50 * time.Millisecond
	electionTime = 500 * time.Millisecond
	startTimeout = 30 * time.Second
)

// newStage starts the cluster and connects to it. On an error nothing is left.
func newStage(ctx context.Context, cfg Config) (*stage, error) {
	s := &stage{cfg: cfg, isCut: make([]bool, nodes), nodes: make([]*node, nodes), spawner: offspring.NewSpawner()}
	s.tape, s.lines.To = story.NewTape(cfg.Out, cfg.Style), cfg.Out
	s.narrator = newNarrator(s.tape, cfg.Style)
	s.client = newClient(cfg.patience(), s.note)

	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	s.cluster, err = etcdtest.New(starting, etcdtest.Config{
		Members: nodes, Heartbeat: heartbeat, Election: electionTime, Dir: os.TempDir(), Command: []string{cfg.Executable, "etcd", "member"},
	})
	if err != nil {
		s.spawner.Close()
		return nil, err
	}
	for _, ep := range s.cluster.Endpoints() {
		// A client that logs its attempts would talk into the story.
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{ep}, Logger: zap.NewNop()})
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.etcd = append(s.etcd, client)
	}
	return s, nil
}

// tell records a fact and tells it to the audience. Safe for concurrent use.
func (s *stage) tell(f Fact) {
	f.At = f.At.Round(0) // as the times of other processes are
	s.history.Add(f)
	if !s.cfg.JSON {
		s.narrator.fact(f)
		return
	}
	s.lines.Print(f)
}

// note records what became of a request. Safe for concurrent use.
func (s *stage) note(a Attempt) {
	s.attempts.Add(a)
	if !s.cfg.JSON {
		s.narrator.attempt(a)
		return
	}
	s.lines.Print(a)
}

// member returns a client of a member that is not cut off.
func (s *stage) member() *clientv3.Client {
	for i, cut := range s.isCut {
		if !cut {
			return s.etcd[i]
		}
	}
	panic("no more than one member is cut off")
}

// start starts a node's process that talks to its own member only, and blocks until it
// listens and the client knows where.
func (s *stage) start(ctx context.Context, index int) error {
	if old := s.nodes[index]; old != nil {
		s.ended = append(s.ended, old)
	}
	n := &node{index: index, name: fmt.Sprintf("n%d", index+1), member: s.cluster.Member(index).Name}
	cmd := exec.Command(s.cfg.Executable, "service", "node", Election, n.name, "--json",
		"--ttl", s.cfg.TTL.String(), "--endpoints", s.cluster.Endpoints()[index])
	begin := time.Now()
	s.tell(Fact{At: begin, Kind: Acted, Act: Start, Node: n.name, Member: n.member})
	if err := launch(s.spawner, n, cmd, s.tell); err != nil {
		return err
	}
	s.nodes[index] = n
	var address string
	err := s.await(ctx, n.name+" listens", s.cfg.limits().Expiry, func(facts []Fact) bool {
		f := last(facts, func(f Fact) bool { return f.Node == n.name && f.Kind == Listening && f.At.After(begin) })
		if f != nil {
			address = f.Address
		}
		return n.Gone() || f != nil
	})
	switch {
	case err != nil:
		return err
	case address == "":
		_, complaint := n.Result()
		return fmt.Errorf("%s ended before it listened: %s", n.name, complaint)
	}
	return s.client.reach(index, n.name, address)
}

// await blocks until cond holds. When that takes longer than the limit it returns
// an error that says what was awaited.
func (s *stage) await(ctx context.Context, what string, limit time.Duration, cond func([]Fact) bool) error {
	overdue := fmt.Errorf("waited %v in vain for this: %s", limit, what)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue)
	defer cancel()
	return s.history.Await(ctx, cond)
}

// close ends everything, whatever goes on, and removes all data.
func (s *stage) close() error {
	s.client.close()
	for _, n := range append(s.ended, s.nodes...) {
		if n != nil {
			n.End()
		}
	}
	s.spawner.Close()
	var errs []error
	for _, client := range s.etcd {
		errs = append(errs, client.Close())
	}
	s.tape.Flush()
	return errors.Join(append(errs, s.cluster.Close())...)
}
