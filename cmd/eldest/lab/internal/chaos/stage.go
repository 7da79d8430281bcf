package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/fault"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/fence"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/truth"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// What everybody in a series knows.
const (
	electionName = "chaos"
	dataKey      = "chaos-data"
)

// etcd's timeouts: short, for leases of a second and quick elections, and long enough for
// a machine on which all of this shares two processors.
const (
	heartbeat       = 25 * time.Millisecond
	electionTimeout = 250 * time.Millisecond
	startTime       = 60 * time.Second
	// effectTime bounds how long a fault may take to show its effect. The longest is a
	// new member: if etcd loses the proposal with which that one makes itself known, as
	// it does in one of some hundred on a busy machine, it proposes again after 5.5 s.
	effectTime = 15 * time.Second
)

// stage is what a series plays on: the cluster, the participants, the store, and the
// record of what happens.
type stage struct {
	cfg   Config
	clock instant.Clock
	field *fault.Field // with the cluster
	truth *truth.Recorder
	crew  *crew.Crew

	file  *os.File // the harness's history
	log   *oracle.Recorder
	store *fence.Store
	whole bool // the record of the truth has ended
}

// build starts everything. On an error nothing is left.
func build(ctx context.Context, cfg Config) (*stage, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	s := &stage{cfg: cfg, clock: instant.Begin()}
	if err := s.build(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) build(ctx context.Context) (err error) {
	cluster, err := inject.Open(ctx, etcdtest.Config{
		Members: s.cfg.Members, Heartbeat: heartbeat, Election: electionTimeout, Command: s.cfg.Member, Replaceable: true,
	})
	if err != nil {
		return err
	}
	s.field = &fault.Field{
		Field: cluster, Election: electionName, Data: dataKey, Contender: s.cfg.Contender, Patience: effectTime, Clock: s.clock,
	}
	dir := s.field.Scratch()
	if s.file, err = os.OpenFile(filepath.Join(dir, "harness.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	s.log = oracle.NewRecorder(s.file, s.clock.Now)
	err = s.log.About(oracle.About{Prefix: keys.Prefix(electionName), Data: dataKey, TTL: s.cfg.TTL, Recovery: s.cfg.Recovery()})
	if err != nil {
		return err
	}
	s.truth = truth.Start(s.field.Each, s.clock, dataKey, s.log.Change)
	if s.store, err = fence.Open(s.log); err != nil {
		return err
	}
	s.crew, err = crew.Start(crew.Config{
		Command: s.cfg.Participant, Size: s.cfg.Participants, Dir: dir, Field: cluster, Log: s.log,
		Seat: actor.Config{
			Contender: s.cfg.Contender, Election: electionName, TTL: s.cfg.TTL, Data: dataKey,
			Store: s.store.Address, Clock: s.clock, Defect: s.cfg.Defect,
		},
	})
	s.field.Crew, s.field.Truth, s.field.Log = s.crew, s.truth, s.log
	return err
}

// stopTruth ends the record, when there is nothing more to record.
func (s *stage) stopTruth() {
	if s.truth != nil {
		s.truth.Stop()
	}
	s.whole = true
}

// close ends everything that goes on still. Histories are gone after it.
func (s *stage) close() error {
	var errs []error
	if s.crew != nil {
		errs = append(errs, s.crew.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	s.stopTruth()
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	if s.field != nil {
		errs = append(errs, s.field.Close())
	}
	return errors.Join(errs...)
}

// files are all histories so far.
func (s *stage) files() []string {
	return append(s.crew.Files(), s.file.Name())
}
