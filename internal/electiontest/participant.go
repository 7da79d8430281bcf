package electiontest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Quiet is the TTL of a session unless it is changed. It is so long that neither renewals nor
// liveness checks change the request counts of a test.
const Quiet = 10 * time.Minute

// Participant is one participant of an election, and the events that its hooks received.
type Participant struct {
	Client     *clientv3.Client
	Session    *lease.Session
	Candidate  *election.Candidate
	Registered chan election.RegisteredEvent
	Waiting    chan election.WaitingEvent
	Won        chan election.WonEvent
	Foreign    chan election.ForeignEvent
}

// Change alters the configs with which a participant joins. If the candidate's config has a
// Session, that one is used instead of a new one.
type Change func(*lease.Config, *election.Config)

// Join makes a participant, which is closed at the end of the test.
func Join(t testing.TB, cli *clientv3.Client, name string, changes ...Change) *Participant {
	t.Helper()
	p := &Participant{Client: cli}
	l := lease.Config{Lease: cli, Options: lease.Options{TTL: Quiet}}
	e := election.Config{Election: name, KV: cli, Watcher: cli}
	p.Registered, e.Hooks.Registered = kept[election.RegisteredEvent]()
	p.Waiting, e.Hooks.Waiting = kept[election.WaitingEvent]()
	p.Won, e.Hooks.Won = kept[election.WonEvent]()
	p.Foreign, e.Hooks.Foreign = kept[election.ForeignEvent]()
	for _, change := range changes {
		change(&l, &e)
	}
	var err error
	if e.Session == nil {
		e.Session, err = lease.Open(etcdtest.Context(t), l)
		require.NoError(t, err)
	}
	p.Session = e.Session
	p.Candidate, err = election.New(e)
	require.NoError(t, err)
	t.Cleanup(p.Leave)
	return p
}

// kept returns a hook and the channel that it fills.
func kept[E any]() (chan E, func(E)) {
	events := make(chan E, 256)
	return events, func(e E) {
		select {
		case events <- e:
		default:
		}
	}
}

// Leave closes a participant in an orderly way. It ignores errors: a test may have deposed or
// partitioned the participant before.
func (p *Participant) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
	defer cancel()
	_ = p.Candidate.Close(ctx)
	_ = p.Session.Close(ctx)
}

// Outcome is how a campaign ended, and when it returned.
type Outcome struct {
	*election.Leadership
	Reason error // why it was not won
	At     time.Time
}

// After calls f in the background.
func After(f func() (*election.Leadership, error)) <-chan Outcome {
	result := make(chan Outcome, 1)
	go func() {
		l, err := f()
		result <- Outcome{Leadership: l, Reason: err, At: time.Now()}
	}()
	return result
}

// Campaign campaigns in the background.
func (p *Participant) Campaign(ctx context.Context) <-chan Outcome {
	return After(func() (*election.Leadership, error) { return p.Candidate.Campaign(ctx) })
}

// Queue registers now and waits for the win in the background, so that the test decides the order
// of the queue.
func (p *Participant) Queue(t testing.TB) <-chan Outcome {
	t.Helper()
	return p.QueueUnder(etcdtest.Context(t), t)
}

// QueueUnder is Queue with a context of the test.
func (p *Participant) QueueUnder(ctx context.Context, t testing.TB) <-chan Outcome {
	t.Helper()
	_, err := p.Candidate.Register(ctx)
	require.NoError(t, err, "its registration")
	return After(func() (*election.Leadership, error) { return p.Candidate.Await(ctx) })
}

// Lead campaigns and must win.
func (p *Participant) Lead(t testing.TB) *election.Leadership {
	t.Helper()
	l, err := p.Candidate.Campaign(etcdtest.Context(t))
	require.NoError(t, err, "a campaign that must be won")
	return l
}

// Wins waits for a campaign that must be won.
func Wins(t testing.TB, result <-chan Outcome) Outcome {
	t.Helper()
	o := etcdtest.Take(t, result, "a win")
	require.NoError(t, o.Reason, "a wait that must be won")
	require.NotNil(t, o.Leadership)
	return o
}

// Fails waits for a campaign that must end without a win, for the given reasons.
func Fails(t testing.TB, result <-chan Outcome, reasons ...error) Outcome {
	t.Helper()
	o := etcdtest.Take(t, result, "the end of a campaign")
	require.Error(t, o.Reason, "it won, and must not")
	require.Nil(t, o.Leadership, "a Leadership beside an error")
	for _, reason := range reasons {
		require.ErrorIs(t, o.Reason, reason)
	}
	return o
}

// Keys reads the keys of an election's queue, in their order.
func Keys(t testing.TB, cli *clientv3.Client, name string) []string {
	t.Helper()
	entries, err := observe.Queue(etcdtest.Context(t), cli, nil, name)
	require.NoError(t, err)
	line := []string{}
	for _, e := range entries {
		line = append(line, e.Key)
	}
	return line
}
