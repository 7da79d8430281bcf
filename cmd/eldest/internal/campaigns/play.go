package campaigns

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/wiretap"
)

// Wire is what the scene is played on.
type Wire interface {
	// Await blocks until the messages so far are what is waited for.
	Await(ctx context.Context, seen func([]wiretap.Message) bool) error
	// Note has the transcript say what happens, beside somebody's lane.
	Note(lane, text string)
	// Cut has everything vanish that a lane sends, or is sent, until Mend.
	Cut(lane string)
	Mend(lane string)
	// Freeze ends the recording.
	Freeze()
}

// candidate is one that stands, of whichever package.
type candidate interface {
	// stand registers and returns; who is alone leads then. await blocks until it leads.
	stand(ctx context.Context) error
	await(ctx context.Context) error
	// resign and withdraw leave the queue; lost is closed when a tenure is over.
	resign(ctx context.Context) error
	withdraw(ctx context.Context) error
	lost() <-chan struct{}
	// key is the candidate's, once it stands.
	key() string
	// close ends everything; errors are of no interest any more.
	close(ctx context.Context)
}

// member is a candidate of the scene.
type member struct {
	candidate
	lane   string
	client *clientv3.Client
	// won says how its waiting ended.
	won chan error
}

// scene is one being played.
type scene struct {
	Config
	wire    Wire
	members []*member
}

// Play plays a scene, until the act is over: until somebody leads again and has set up what
// it needs, or ctx ends. What follows, the candidates' leaving, is not recorded. It blocks
// until they have left.
func Play(ctx context.Context, wire Wire, cfg Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	s := &scene{Config: cfg, wire: wire}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	err := s.enter(ctx, waiting)
	if err == nil {
		err = s.act(ctx)
	}
	wire.Freeze()
	stop()
	s.leave(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// enter has all stand, one after another. The first leads when this returns, and each other
// one waits for the one before.
func (s *scene) enter(ctx, waiting context.Context) error {
	for i := range s.Candidates {
		m := &member{lane: fmt.Sprintf("c%d", i+1), won: make(chan error, 1)}
		client, err := s.Dial(m.lane)
		if err != nil {
			return err
		}
		m.client = client
		s.members = append(s.members, m)
		if m.candidate, err = join(ctx, s.Config, client, m.lane); err != nil {
			return fmt.Errorf("%s: %w", m.lane, err)
		}
		if err := m.stand(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.lane, err)
		}
		if err := s.settled(ctx, m.lane, s.watchesAtFirst(), 0); err != nil {
			return err
		}
		go func() { m.won <- m.await(waiting) }()
		if i > 0 {
			// Its predecessor's, and the look whether that is still there.
			if err := s.settled(ctx, m.lane, s.watchesAtFirst()+1, s.looks()); err != nil {
				return err
			}
			continue
		}
		if err := s.leads(ctx, m); err != nil {
			return err
		}
	}
	if s.Act.silent() {
		return s.renewed(ctx)
	}
	return nil
}

// leads waits until a candidate leads.
func (s *scene) leads(ctx context.Context, m *member) error {
	select {
	case err := <-m.won:
		if err != nil {
			return fmt.Errorf("%s: %w", m.lane, err)
		}
		s.wire.Note(m.lane, "leads")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// act has it happen, and waits until it is over.
func (s *scene) act(ctx context.Context) error {
	leader, second := s.members[0], s.members[1]
	switch s.Act {
	case Resign:
		s.wire.Note(leader.lane, "resigns")
		if err := leader.resign(ctx); err != nil {
			return err
		}
	case Withdraw:
		s.wire.Note(second.lane, "withdraws")
		if err := second.withdraw(ctx); err != nil {
			return err
		}
		third := s.members[2]
		return s.settled(ctx, third.lane, s.watchesAtFirst()+2, 2*s.looks())
	case Delete:
		if err := s.remove(ctx, leader.key()); err != nil {
			return err
		}
		if err := s.told(ctx, leader); err != nil {
			return err
		}
		return s.leads(ctx, second)
	case Crash:
		s.wire.Note(leader.lane, "crashes")
		s.wire.Cut(leader.lane)
		// Its process is gone: nothing of it arrives any more, the end of its connection
		// neither, which etcd would not heed.
		_ = leader.client.Close()
	case Cut:
		s.wire.Note(leader.lane, "is cut off")
		s.wire.Cut(leader.lane)
		if err := s.told(ctx, leader); err != nil {
			return err
		}
		s.wire.Note(leader.lane, "leads no more")
	}
	return s.leads(ctx, second)
}

// told waits until a leader knows that its tenure is over. Etcd's package tells only of the
// lease's end; a key that was removed it does not notice.
func (s *scene) told(ctx context.Context, m *member) error {
	if s.Contender == Concurrency && s.Act == Delete {
		return nil
	}
	select {
	case <-m.lost():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// remove is what an operator does.
func (s *scene) remove(ctx context.Context, key string) error {
	client, err := s.Dial("operator")
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	_, err = client.Delete(ctx, key)
	return err
}

// leave ends all, while nobody listens any more.
func (s *scene) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	for _, m := range s.members {
		s.wire.Mend(m.lane)
	}
	for _, m := range s.members {
		if m.candidate != nil {
			m.close(ctx)
		}
		_ = m.client.Close()
	}
}
