package raftpeer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

const (
	// connections and rpcTimeout are what raft's own examples use.
	connections = 3
	rpcTimeout  = 10 * time.Second
	// enqueueing limits how long a request waits before raft takes it.
	enqueueing = 5 * time.Second
	// extraName is the name of the extra voter.
	extraName = "extra"
)

// voter is a voter of one group.
type voter struct {
	*raft.Raft
	id        raft.ServerID
	entries   *entries
	store     *raft.InmemStore
	transport *raft.NetworkTransport
	life      *peer.Life // connections, and waits for futures that a context has left
}

// voterID is a voter's ID: its name and control address.
func voterID(name, control string) raft.ServerID { return raft.ServerID(name + "@" + control) }

// controlOf returns the control address of a voter.
func controlOf(id raft.ServerID) string {
	_, control, _ := strings.Cut(string(id), "@")
	return control
}

func isExtra(id raft.ServerID) bool { return strings.HasPrefix(string(id), extraName+"@") }

// newVoter starts a voter, which is in no group yet.
func newVoter(network peer.Network, setting string, id raft.ServerID) (*voter, error) {
	l, err := network.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	v := &voter{id: id, entries: &entries{}, store: raft.NewInmemStore(), life: peer.NewLife()}
	v.transport = raft.NewNetworkTransport(&stream{l, network, v.life}, connections, rpcTimeout, io.Discard)
	cfg := configuration(setting)
	cfg.LocalID = id
	v.Raft, err = raft.NewRaft(cfg, v.entries, v.store, v.store, raft.NewDiscardSnapshotStore(), v.transport)
	if err != nil {
		v.life.End()
		return nil, errors.Join(err, v.transport.Close())
	}
	return v, nil
}

// found makes a group of this voter only, and blocks until it leads.
func (v *voter) found(ctx context.Context) error {
	self := raft.Server{Suffrage: raft.Voter, ID: v.id, Address: v.transport.LocalAddr()}
	if err := v.await(ctx, v.BootstrapCluster(raft.Configuration{Servers: []raft.Server{self}})); err != nil {
		return err
	}
	select {
	case <-v.LeaderCh():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leads reports whether the voter leads.
func (v *voter) leads() bool { return v.State() == raft.Leader }

// leader returns the ID of the group's leader, "" if the voter knows none.
func (v *voter) leader() raft.ServerID {
	_, id := v.LeaderWithID()
	return id
}

// knows reports whether the latest configuration that the voter has received has another one.
func (v *voter) knows(id raft.ServerID) bool {
	configuration := v.GetConfiguration() // read from a copy: it does not block
	return configuration.Error() == nil && slices.ContainsFunc(configuration.Configuration().Servers, func(s raft.Server) bool {
		return s.ID == id
	})
}

// await blocks until a future is settled, or ctx ends. What was asked for may happen after that.
func (v *voter) await(ctx context.Context, f raft.Future) error {
	settled := make(chan error, 1)
	v.life.Go(func() { settled <- f.Error() })
	select {
	case err := <-settled:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOver transfers the leadership to a voter that is up to date. The barrier shows which ones are: raft
// would also choose one that has failed.
func (v *voter) handOver(ctx context.Context) error {
	if err := v.await(ctx, v.Barrier(enqueueing)); err != nil {
		return err
	}
	return v.await(ctx, v.LeadershipTransfer())
}

// resign transfers the leadership to another participant, and not to the extra voter.
func (v *voter) resign(ctx context.Context) error {
	configuration := v.GetConfiguration()
	if err := v.await(ctx, configuration); err != nil {
		return err
	}
	for _, s := range configuration.Configuration().Servers {
		if s.ID != v.id && !isExtra(s.ID) {
			return v.await(ctx, v.LeadershipTransferToServer(s.ID, s.Address))
		}
	}
	return errors.New("there is no other participant to lead")
}

// committed returns all entries, if the voter leads.
func (v *voter) committed(ctx context.Context) ([]string, error) {
	if err := v.await(ctx, v.Barrier(enqueueing)); err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	return v.entries.list(), nil
}

// shutdown ends the voter, and blocks until it has ended. Connections are closed first: nothing waits for an
// answer that does not come.
func (v *voter) shutdown() error {
	ended := v.Shutdown()
	v.life.End()
	return errors.Join(v.transport.Close(), ended.Error())
}

// stream is a raft.StreamLayer over a network. All connections end with the voter's life: the transport that uses it
// does not close all of them.
type stream struct {
	net.Listener
	network peer.Network
	life    *peer.Life
}

// Dial opens a connection to another voter.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.life, timeout)
	defer cancel()
	return s.life.Dial(ctx, s.network, string(address))
}

// Accept accepts a connection of another voter.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		s.life.Track(c)
	}
	return c, err
}

// direct is the network of the extra voter: no faults, nothing is counted.
type direct struct{ net.Dialer }

func (d direct) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.DialContext(ctx, network, address)
}

func (direct) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

// entries is a raft.FSM: the election's log. It has no snapshots: elections have fewer entries than raft
// keeps without one.
type entries struct {
	mu  sync.Mutex
	all []string
}

// Apply implements raft.FSM.
func (e *entries) Apply(l *raft.Log) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, string(l.Data))
	return nil
}

// Snapshot implements raft.FSM.
func (*entries) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.ErrUnsupported }

// Restore implements raft.FSM.
func (*entries) Restore(r io.ReadCloser) error { return errors.Join(errors.ErrUnsupported, r.Close()) }

func (e *entries) list() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}
