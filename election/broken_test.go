package election_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Wrong: a Campaign that first resigns a retired tenure does that before it is the
// candidate's call (begin calls endDrained, and calls only after it). Close and Withdraw
// do not know of it and cannot end it: with a context without an end it blocks for as long
// as etcd does not answer the removal, although Campaign and Close promise that Close ends
// it, at once, with ErrClosed. It is not waited for either.
//
// Proposed: begin makes the call the present one first, and runs endDrained inside during,
// under the attempt's context.
func TestBrokenCloseEndsACampaignThatResignsARetiredTenure(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v")
	l := s.lead(c)
	l.Retire(nil)
	held := make(chan func(), 1)
	g.hold(held)
	campaign := s.campaigning(s.ctx, c)
	get(s, held) // the removal is on its way, and is not answered
	closing, cancel := context.WithTimeout(s.ctx, 2*time.Second)
	defer cancel()
	_ = c.Close(closing)
	select {
	case got := <-campaign:
		require.ErrorIs(t, got.err, eldest.ErrClosed)
	case <-time.After(3 * time.Second):
		t.Fatal("the campaign of a closed candidate goes on")
	}
}

// Wrong: as above, by Withdraw: the campaign goes on, queues and wins.
func TestBrokenWithdrawEndsACampaignThatResignsARetiredTenure(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v")
	l := s.lead(c)
	l.Retire(nil)
	met, let := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(met); <-let; return nil }, nil)
	campaign := s.campaigning(s.ctx, c)
	get(s, met)
	withdrawn := make(chan error, 1)
	go func() { withdrawn <- c.Withdraw(s.ctx) }()
	select { // it either ends the campaign or says that there is none
	case err := <-withdrawn:
		t.Log("withdraw:", err)
	case <-time.After(time.Second):
	}
	close(let)
	got := get(s, campaign)
	require.ErrorIs(t, got.err, eldest.ErrWithdrawn)
}

// Wrong: what is owed is remembered for the session, and what is doomed for the lease. A
// registration of unknown outcome that arrives after Abandon and Resume is looked out for by
// nobody, also not by a candidate of the resumed session in that election: its key blocks
// the queue for as long as the resumed session lives (G8).
//
// Proposed: keep owed beside doomed, in what past.go remembers of the lease.
func TestBrokenLateRegistrationAfterResume(t *testing.T) {
	s := newStage(t)
	session := s.session(s.admin)
	c, g := s.gated("v", on(session))
	ctx, cancel := context.WithCancel(s.ctx)
	g.on(func(context.Context) error { cancel(); return context.DeadlineExceeded }, nil)
	_, err := c.Campaign(ctx)
	require.ErrorIs(t, err, context.Canceled)
	session.Abandon()

	resumed := s.resume(session)
	again := s.candidate("v", on(resumed), func(cfg *election.Config) { cfg.KV = g })
	require.NoError(t, s.lead(again).Resign(s.ctx))
	require.NoError(t, again.Close(s.ctx))
	s.arrives(session)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && len(s.queue()) > 0; {
		time.Sleep(10 * time.Millisecond)
	}
	require.Empty(t, s.queue(), "a ghost, under a session that lives")
}

// doomed counts the tokens that a session remembers as to be removed.
func doomed(t *testing.T, claims any) int {
	past := reflect.ValueOf(claims).Elem().FieldByName("past").Elem()
	return past.FieldByName("doomed").Len()
}

// Wrong: a clean-up that the next campaign stops has most often sent its delete by then.
// Where that has landed the next registration finds no key, and nobody calls Gone: the token
// stays doomed for as long as the session lives. A program that polls with short campaigns
// makes it grow without end.
//
// Proposed: a claim keeps the tokens that it has doomed (one, or few) for the next claim of
// the name, which calls Gone for those that are smaller than the one it holds: a key with a
// newer create revision proves that they are over.
func TestBrokenDoomedTokensGrow(t *testing.T) {
	s := newStage(t)
	session := s.session(s.admin)
	s.lead(s.candidate("leader"))
	landed := make(chan struct{}, 1)
	far := etcdtest.WithTxns(s.admin, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if !txn.Then[0].IsDelete() {
			return txn.Commit(txn.Context)
		}
		resp, err := txn.Commit(context.WithoutCancel(txn.Context))
		landed <- struct{}{}
		select { // the answer is on its way
		case <-txn.Context.Done():
			return nil, txn.Context.Err()
		case <-time.After(50 * time.Millisecond):
			return resp, err
		}
	})
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = far })
	const rounds = 100
	for range rounds {
		ctx, cancel := context.WithCancel(s.ctx)
		campaign := s.campaigning(ctx, c)
		s.queued(2)
		cancel()
		require.ErrorIs(t, get(s, campaign).err, context.Canceled)
		get(s, landed) // a moment later the program tries again
	}
	require.NoError(t, c.Close(s.ctx))
	s.queued(1)
	n := doomed(t, session.Claims())
	require.Less(t, n, 10, "of %d rounds", rounds)
}

// Wrong: a retired tenure has ended, but its token is not doomed: after Abandon and Resume
// the key is adopted, and the token comes back with a new tenure. A write under the guard of
// the retired tenure that is on its way, or one that bears its token elsewhere, counts in
// the new one (G2, G4).
//
// Proposed: Retire dooms the token, or Resume's candidates are given only what waits or
// leads, as Abandon's docstring says.
func TestBrokenRetiredTokenComesBack(t *testing.T) {
	s := newStage(t)
	session := s.session(s.admin)
	l := s.lead(s.candidate("v", on(session)))
	l.Retire(nil)
	session.Abandon()
	require.Greater(t, s.lead(s.candidate("v", on(s.resume(session)))).Token(), l.Token())
}

// Wrong: Gone forgets that a token was doomed as soon as etcd has confirmed that it is over.
// But the answer to a registration that was given before the deletion may be on its way:
// it shows the key, Hold lets it pass, and the candidate stands with a token that is dead.
// What comes next notices (look, the watch), so nobody leads; but the campaign ends with
// ErrDeposed although nobody has removed the key by hand, and the hooks are told of it. So it
// is with Resign, Withdraw or Close beside a Campaign, and with the sweep of a candidate with
// another wrapper of the client.
//
// Proposed: Gone keeps the token while a claim of the session is between Claim and Hold, and
// the last of them drops it; then Hold returns ErrDoomed, and the queue is entered anew.
func TestBrokenDeadTokenIsHeld(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.admin)
	g := newGate(r)
	c, first := s.resignedInVain(r, g)

	removing, remove := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(removing); <-remove; return nil }, nil)
	resigned := make(chan error, 1)
	go func() { resigned <- first.Resign(s.ctx) }() // again
	get(s, removing)
	entered, answer := make(chan struct{}), make(chan struct{})
	g.on(nil, func(_ context.Context, err error) error { close(entered); <-answer; return err })
	campaign := s.campaigning(s.ctx, c)
	get(s, entered) // it has found the key
	close(remove)
	require.NoError(t, get(s, resigned))
	close(answer)
	got := get(s, campaign)
	require.NoError(t, got.err, "nobody has removed its key")
	require.Greater(t, got.l.Token(), first.Token())
}
