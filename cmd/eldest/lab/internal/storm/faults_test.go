package storm_test

import (
	"context"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/transfer"
)

// fault is a fault of a node.
type fault string

// The faults. All but the follower's affect the current leader.
const (
	kill         fault = "leader killed"        // SIGKILL
	stop         fault = "leader stopped"       // SIGTERM
	handOver     fault = "leadership handed on" // eldest transfer
	killFollower fault = "follower killed"      // SIGKILL
	suspend      fault = "leader suspended"     // SIGSTOP, for longer than its lease
	deleteKey    fault = "leader's key deleted" // by hand
)

// faults are drawn without replacement, so that each one occurs: rare ones once a round.
var faults = []fault{kill, stop, handOver, killFollower, suspend, deleteKey, kill, stop, handOver, deleteKey}

const (
	// every is the time between two faults.
	every = time.Second
	// leaderless is how long the nodes may be without a leader: no fault lasts so long.
	leaderless = 15 * time.Second
	// overtime is how long a storm may continue until each fault has taken effect.
	overtime = 30 * time.Second
)

// applyFaults applies a fault once a second, until the time is over and each fault has taken effect.
func (s *storm) applyFaults(lasts time.Duration) {
	begin := time.Now()
	var round []fault
	for tick := time.NewTicker(every); time.Since(begin) < lasts || time.Since(begin) < lasts+overtime && !s.allTookEffect(); <-tick.C {
		if len(round) == 0 {
			for _, i := range s.rng.Perm(len(faults)) {
				round = append(round, faults[i])
			}
		}
		if !s.await(leaderless, func() bool { return s.leader() != nil }) {
			s.problem("nobody has led for %v", leaderless)
			return
		}
		if s.do(round[0]) {
			round = round[1:]
		}
	}
}

// do begins a fault, and reports whether there was a node for it.
func (s *storm) do(f fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.leader()
	if f == killFollower {
		p = s.follower()
	}
	if p == nil {
		return false
	}
	key, token := p.key, p.token
	down, takeOver := time.Duration(100+s.rng.IntN(500))*time.Millisecond, s.rng.IntN(2) == 0
	switch f {
	case kill, killFollower:
		s.end(f, p, syscall.SIGKILL, down, takeOver)
	case stop:
		s.end(f, p, syscall.SIGTERM, down, takeOver)
	case suspend:
		s.leave(p, false)
		process := p.process
		s.faults.Go(func() { s.suspend(p, process, token) })
	case deleteKey:
		s.faults.Go(func() { s.delete(key) })
	case handOver:
		s.faults.Go(func() { s.handOver(token) })
	}
	return true
}

// end ends the node's process, and starts the next one. The caller holds mu.
func (s *storm) end(f fault, p *serviceNode, sig syscall.Signal, down time.Duration, takeOver bool) {
	s.leave(p, sig == syscall.SIGTERM)
	p.dying, p.role = true, ""
	process := p.process
	if err := process.Signal(sig); err != nil {
		s.problems = append(s.problems, "signal: "+err.Error())
	}
	s.faults.Go(func() {
		defer s.back(p)
		if !s.await(lifetime, process.Gone) {
			s.problem("%s has not ended %v after %v", p.name, lifetime, sig)
			process.End()
		}
		if code, _ := process.Result(); sig != syscall.SIGKILL || code == -1 {
			s.tookEffect(f)
		}
		time.Sleep(down)
		s.start(p, takeOver)
	})
}

func (s *storm) suspend(p *serviceNode, process *offspring.Process, old int64) {
	if err := process.Suspend(); err != nil {
		s.problem("suspend: %v", err)
	}
	time.Sleep(s.ttl + 3*every/2)
	succeeded := s.await(0, func() bool {
		for token := range s.leaders {
			if token > old {
				return true
			}
		}
		return false
	})
	s.back(p) // before it can answer: what it refuses from now on is not excused by the suspension
	if err := process.Resume(); err != nil {
		s.problem("resume: %v", err)
	}
	if succeeded {
		s.tookEffect(suspend)
	}
}

func (s *storm) delete(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	defer cancel()
	switch gone, err := s.etcd.Delete(ctx, key); {
	case err != nil:
		s.problem("deleting %s: %v", key, err)
	case gone.Deleted > 0:
		s.tookEffect(deleteKey)
	}
}

// handOver requests a transfer. It may be refused, or preceded by the next fault.
func (s *storm) handOver(token int64) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	queue, err := observe.Queue(ctx, s.etcd, nil, service.Election)
	if err != nil {
		return
	}
	for _, waiting := range queue[min(1, len(queue)):] {
		if int64(queue[0].Token) != token {
			return
		}
		result, err := transfer.To(ctx, transfer.Client(s.etcd), service.Election, waiting.Key, transfer.Options{Timeout: every})
		if err == nil && result.Drained {
			s.tookEffect(handOver)
			return
		}
	}
}

func (s *storm) tookEffect(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects[f]++
}

// allTookEffect reports whether each fault has taken effect.
func (s *storm) allTookEffect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		if s.effects[f] == 0 {
			return false
		}
	}
	return true
}
