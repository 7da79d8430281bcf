package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/crew"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/fault"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/fence"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/truth"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
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
	cfg     Config
	clock   instant.Clock
	cluster *etcdtest.Cluster
	clients []*clientv3.Client // of each member, without faults
	admin   *clientv3.Client   // of all members, without faults
	truth   *truth.Recorder
	crew    *crew.Crew
	field   *fault.Field

	file  *os.File // the harness's history
	log   *oracle.Recorder
	store storeProcess
}

// storeProcess is the process of the fenced store.
type storeProcess struct {
	cmd     *exec.Cmd
	spawner *offspring.Spawner
	stdin   io.Closer
	address string
	file    string
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
	s.cluster, err = etcdtest.New(ctx, etcdtest.Config{
		Members: s.cfg.Members, Heartbeat: heartbeat, Election: electionTimeout, Command: s.cfg.Member, Replaceable: true,
	})
	if err != nil {
		return err
	}
	dir := s.cluster.Scratch()
	if s.file, err = os.OpenFile(filepath.Join(dir, "harness.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	s.log = oracle.NewRecorder(s.file, s.clock.Now)
	err = s.log.About(oracle.About{Prefix: keys.Prefix(electionName), Data: dataKey, TTL: s.cfg.TTL, Recovery: s.cfg.Recovery()})
	if err != nil {
		return err
	}
	if s.admin, err = s.cluster.Dial(); err != nil {
		return err
	}
	for _, endpoint := range s.cluster.Endpoints() {
		c, err := s.cluster.Dial(func(cfg *clientv3.Config) { cfg.Endpoints = []string{endpoint} })
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	s.truth = truth.Start(s.clients, s.clock, dataKey, s.log.Change)
	if err := s.startStore(filepath.Join(dir, "store.jsonl")); err != nil {
		return err
	}
	s.crew, err = crew.Start(crew.Config{
		Command: func() *exec.Cmd { return s.cfg.Process(RoleParticipant) },
		Size:    s.cfg.Participants, Dir: dir, Cluster: s.cluster, Log: s.log,
		Seat: actor.Config{
			Contender: s.cfg.Contender, Election: electionName, TTL: s.cfg.TTL, Data: dataKey,
			Store: s.store.address, Clock: s.clock, Defect: s.cfg.Defect,
		},
	})
	s.field = &fault.Field{
		Cluster: s.cluster, Crew: s.crew, Truth: s.truth, Admin: s.admin, Log: s.log,
		Election: electionName, Data: dataKey, Contender: s.cfg.Contender, Patience: effectTime, Clock: s.clock,
	}
	return err
}

func (s *stage) startStore(file string) error {
	st := &s.store
	st.file, st.spawner = file, offspring.NewSpawner()
	cmd := s.cfg.Process(RoleStore, file, strconv.FormatInt(int64(s.clock.Zero), 10))
	cmd.Env = offspring.Env(os.Environ())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := st.spawner.Start(cmd); err != nil {
		return fmt.Errorf("starting the store: %w", err)
	}
	st.cmd, st.stdin = cmd, stdin
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("starting the store: %w", err)
	}
	var ready fence.Ready
	err = json.Unmarshal(line, &ready)
	st.address = ready.Address
	return err
}

// closeStore has the store end, which it does well unless its history is not whole.
func (s *stage) closeStore() error {
	st := &s.store
	if st.spawner == nil {
		return nil
	}
	var err error
	if st.cmd != nil {
		_ = st.stdin.Close() // that is what it waits for
		if err = st.cmd.Wait(); err != nil {
			err = fmt.Errorf("the store: %w", err)
		}
	}
	st.spawner.Close()
	*st = storeProcess{file: st.file}
	return err
}

// stopTruth ends the record, when there is nothing more to record.
func (s *stage) stopTruth() {
	if s.truth == nil {
		return
	}
	s.truth.Stop()
	for _, c := range s.clients {
		_ = c.Close() // nothing is under way
	}
	s.clients = nil
}

// close ends everything that goes on still. Histories are gone after it.
func (s *stage) close() error {
	var errs []error
	if s.crew != nil {
		errs = append(errs, s.crew.Close())
	}
	errs = append(errs, s.closeStore())
	s.stopTruth()
	if s.admin != nil {
		_ = s.admin.Close() // nothing is under way
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Close())
	}
	return errors.Join(errs...)
}

// files are all histories so far.
func (s *stage) files() []string {
	return append([]string{s.file.Name(), s.store.file}, s.crew.Files()...)
}
