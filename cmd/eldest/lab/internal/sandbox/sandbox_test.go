package sandbox

import (
	"errors"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// Three participants register, the oldest leads, and all that the page needs to show that is in the
// log.
func TestThreeParticipants(t *testing.T) {
	t.Parallel()
	s := open(t, 3, DefaultTTL, feed.Eldest, feed.Eldest, feed.Eldest)
	etcdtest.Eventually(t, func() bool { return len(s.order()) == 3 }, "three are queued")
	order := s.order()
	require.ElementsMatch(t, []string{"p1", "p2", "p3"}, order)
	leader := s.Places("")[0]
	s.Await(0, "the oldest has won", func(e feed.Event) bool {
		return feedtest.Reported(order[0], "won")(e) && e.Report.Token == leader.Create && e.Report.Key == leader.Key
	})
	s.Await(0, "it is sure", feedtest.Reported(order[0], "sure"))
	s.Await(0, "its write is acknowledged", feedtest.Reported(order[0], "acked"))
	for i, who := range order {
		phase := []string{"leading", "waiting", "waiting"}[i]
		s.Await(0, who+" is "+phase, func(e feed.Event) bool { return feedtest.Reported(who, "phase")(e) && e.Report.Text == phase })
		s.Await(0, who+" has its lease", func(e feed.Event) bool {
			return feedtest.Reported(who, "joined")(e) && e.Report.Lease == s.place(who).Lease
		})
		state := s.Participant(who)
		require.Equal(t, feed.ParticipantState{Kind: feed.Eldest, Life: feed.Running, Lives: 1, Pid: state.Pid, TTLMS: 5000}, state)
		require.Positive(t, state.Pid)
		place := s.place(who)
		require.Equal(t, who, place.Value)
		require.Equal(t, "jobs/"+place.Lease, place.Key)
		require.GreaterOrEqual(t, place.Mod, place.Create)
		require.False(t, place.Foreign)
	}
	s.Await(0, "the time of a lease", func(e feed.Event) bool {
		return e.Type == feed.Queue && len(e.Queue.Places) == 3 && e.Queue.Places[0].GrantedMS == 5000 && e.Queue.Places[0].LeftMS > 0 && e.Queue.Places[0].LeftMS <= 5000
	})
	s.Await(0, "the observer", func(e feed.Event) bool {
		return e.Type == feed.Observer && e.Observer.State == "led" && e.Observer.Token == leader.Create && e.Observer.Value == order[0]
	})
	members := s.Await(0, "a leader of etcd and two followers", func(e feed.Event) bool {
		return e.Type == feed.Members && len(e.Members) == 3 && slices.Equal(states(e), []string{feed.MemberFollows, feed.MemberFollows, feed.MemberLeads})
	})
	require.Positive(t, members.Members[0].RaftTerm)

	sent := s.Await(0, "its registration", func(e feed.Event) bool {
		return e.Type == feed.Sent && e.Who == order[0] && e.Message.Method == "Txn" && e.Message.Kind == "request"
	})
	require.NotEmpty(t, sent.Message.Text)
	require.Contains(t, string(sent.Message.Body), "success")
	require.False(t, sent.Message.Renewal)
	s.Await(sent.Seq, "it has arrived", func(e feed.Event) bool { return e.Type == feed.Delivered && e.Message.ID == sent.Message.ID })
	answer := s.Await(sent.Seq, "its answer", func(e feed.Event) bool {
		return e.Type == feed.Sent && e.Who == order[0] && e.Message.Call == sent.Message.Call && e.Message.Kind == "answer"
	})
	require.GreaterOrEqual(t, answer.Message.Revision, leader.Create)
	renewal := s.Await(0, "a renewal", func(e feed.Event) bool {
		return e.Type == feed.Sent && e.Message.Method == "LeaseKeepAlive" && e.Message.Kind == "answer"
	})
	require.True(t, renewal.Message.Renewal)

	info := s.Info()
	require.Equal(t, "jobs", info.Election)
	require.Len(t, info.Endpoints, 3)
	require.True(t, info.Write)
	for i, e := range s.All() {
		require.EqualValues(t, i+1, e.Seq)
		require.NotEqual(t, feed.Problem, e.Type, e.Error)
	}
}

// states returns the states of the members, sorted.
func states(e feed.Event) (all []string) {
	for _, m := range e.Members {
		all = append(all, m.State)
	}
	slices.Sort(all)
	return all
}

// Each action on the process of a participant has its effect.
func TestProcesses(t *testing.T) {
	t.Parallel()
	// p4's lease expires once, and no other one before that on a busy machine.
	s := openQueue(t, 1, 8*time.Second, feed.Eldest, feed.Herd, feed.Keeper, feed.Heartbeats)
	require.True(t, alive(s.Participant("p3").KeeperPid))
	require.EqualValues(t, 1000, s.Participant("p4").HeartbeatMS)

	s.do(feed.Action{Do: feed.Resign, On: "p1"})
	s.queued("p2", "p3", "p4", "p1")
	s.Await(0, "p2 leads", feedtest.Reported("p2", "won"))
	s.do(feed.Action{Do: feed.Resign, On: "p2"}) // the herd's, which needs a new session
	s.queued("p3", "p4", "p1", "p2")
	s.do(feed.Action{Do: feed.Leave, On: "p2"})
	s.queued("p3", "p4", "p1")
	require.Equal(t, feed.Left, s.Participant("p2").Life)

	// The keeper revokes the lease of a process that was killed.
	s.Await(0, "p3 leads", feedtest.Reported("p3", "won"))
	keeper := s.Participant("p3").KeeperPid
	s.do(feed.Action{Do: feed.Kill, On: "p3"})
	require.Equal(t, feed.Dead, s.Participant("p3").Life)
	s.queued("p4", "p1")
	etcdtest.Eventually(t, func() bool { return !alive(keeper) }, "the keeper has ended")
	s.do(feed.Action{Do: feed.Restart, On: "p3"})
	s.queued("p4", "p1", "p3")
	require.Equal(t, 2, s.Participant("p3").Lives)

	// A leader with heartbeats that is stopped is suspended when it continues.
	s.Await(0, "p4 leads", feedtest.Reported("p4", "won"))
	s.do(feed.Action{Do: feed.Stop, On: "p4"})
	require.Equal(t, feed.Stopped, s.Participant("p4").Life)
	stopped, err := etcdtest.Stopped(s.Participant("p4").Pid)
	require.NoError(t, err)
	require.True(t, stopped)
	s.among("p1", "p3") // p1 has no heartbeats, so p4's lease expires
	since := s.Seq()
	s.do(feed.Action{Do: feed.Continue, On: "p4"})
	require.Equal(t, feed.Running, s.Participant("p4").Life)
	s.Await(since, "p4 does not lead any more", feedtest.Reported("p4", "suspended", "ended"))
	s.among("p1", "p3", "p4")

	since = s.Seq()
	s.do(feed.Action{Do: feed.SetRule, On: "p3", Rule: participant.Guard})
	left := s.Await(since, "p3 leaves", feedtest.Reported("p3", "leaving"))
	joined := s.Await(left.Seq, "p3 comes back", feedtest.Reported("p3", "joined"))
	for _, e := range s.All() {
		entering := feedtest.Reported("p3", "phase")(e) && e.Report.Text == "entering"
		require.False(t, entering && e.Seq > left.Seq && e.Seq < joined.Seq, "it leaves, and does not enter")
	}
	s.among("p1", "p3", "p4")
	require.Equal(t, participant.Guard, s.Participant("p3").Rule)
	s.do(feed.Action{Do: feed.SetRule, On: "p3"})
	require.Empty(t, s.Participant("p3").Rule)
	require.Equal(t, 4, s.Participant("p3").Lives)

	// A process that ends by itself is reported.
	require.NoError(t, syscall.Kill(s.Participant("p3").Pid, syscall.SIGKILL))
	s.Await(0, "a problem", func(e feed.Event) bool { return e.Type == feed.Problem })
	require.Equal(t, feed.Dead, s.Participant("p3").Life)
}

// A reply is lost, and messages are late.
func TestNetworkThatIsPoor(t *testing.T) {
	t.Parallel()
	s := openQueue(t, 1, longTTL, feed.Eldest, feed.Eldest)
	s.Await(0, "p1 leads, and has written", feedtest.Reported("p1", "acked"))
	since := s.Seq()
	s.do(feed.Action{Do: feed.LoseReply, On: "p1"})
	require.True(t, s.Participant("p1").LoseReply)
	s.Message(since, feed.Lost, "p1", "answer") // to a write
	s.Await(since, "the outcome is unclear", feedtest.Reported("p1", "unclear"))
	require.False(t, s.Participant("p1").LoseReply)

	since = s.Seq()
	s.do(feed.Action{Do: feed.Delay, On: "p2", MS: 100})
	late := s.Await(since, "a message is sent", func(e feed.Event) bool {
		return e.Type == feed.Sent && e.Who == "p2" && e.Message.Kind == "request"
	})
	arrived := s.Await(late.Seq, "it arrives", func(e feed.Event) bool { return e.Type == feed.Delivered && e.Message.ID == late.Message.ID })
	require.GreaterOrEqual(t, arrived.AtMS-late.AtMS, 99.0)
	s.do(feed.Action{Do: feed.Heal, On: "p2"})
	require.Zero(t, s.Participant("p2").DelayMS)
}

// A leader that is cut off stops before its successor leads.
func TestNetworkThatIsCut(t *testing.T) {
	t.Parallel()
	// p1's lease expires once, and not before that on a busy machine.
	s := openQueue(t, 1, 8*time.Second, feed.Eldest, feed.Eldest)
	s.Await(0, "p1 leads, and has written", feedtest.Reported("p1", "acked"))
	since := s.Seq()
	s.do(feed.Action{Do: feed.Cut, On: "p1", Way: replies})
	require.Equal(t, replies, s.Participant("p1").Cut)
	s.Message(since, feed.Lost, "p1", "answer")
	s.Await(since, "p1 stops leading", feedtest.Reported("p1", "not sure"))
	won := s.Await(since, "p2 leads", feedtest.Reported("p2", "won"))
	require.Less(t, s.Newest(feedtest.Reported("p1", "sure")).AtMS, won.AtMS)
	s.do(feed.Action{Do: feed.Heal, On: "p1"})
	s.queued("p2", "p1")
	require.Empty(t, s.Participant("p1").Cut)
}

// Messages are held, and released or dropped, by their ID or their kind.
func TestHold(t *testing.T) {
	t.Parallel()
	s := openQueue(t, 1, longTTL, feed.Eldest, feed.Eldest)
	s.Await(0, "p1 leads, and has written", feedtest.Reported("p1", "acked"))
	became := func(how feed.Type, id int64) {
		t.Helper()
		_, ok := s.Find(0, func(e feed.Event) bool { return e.Type == how && e.Message.ID == id })
		require.True(t, ok, "%s %d", how, id)
	}
	since := s.Seq()
	s.do(feed.Action{Do: feed.Breakpoint, On: "p1", Breakpoints: []string{"Txn request"}})
	require.Equal(t, []string{"Txn request"}, s.Participant("p1").Breakpoints)
	id := s.Message(since, feed.Held, "p1", "Txn request").ID // a write of the leader
	s.do(feed.Action{Do: feed.Release, Message: id})
	became(feed.Delivered, id)
	last := s.Done().Steps[len(s.Done().Steps)-1].Action
	require.Equal(t, feed.Action{Do: feed.Release, On: "p1", Match: "Txn request"}, last)
	require.ErrorContains(t, s.Do(s.ctx, feed.Action{Do: feed.Release, Message: id}), "is not held")

	since = s.Seq()
	s.do(feed.Action{Do: feed.Drop, On: "p1", Match: "Txn request"}) // it waits for one
	s.Await(since, "it is lost", func(e feed.Event) bool { return e.Type == feed.Lost && e.Who == "p1" })

	since = s.Seq()
	s.do(feed.Action{Do: feed.Hold, On: "p1"})
	require.True(t, s.Participant("p1").Hold)
	id = s.Message(since, feed.Held, "p1", "Txn request").ID
	s.do(feed.Action{Do: feed.Unhold, On: "p1"})
	require.False(t, s.Participant("p1").Hold)
	s.Await(since, "it is released", func(e feed.Event) bool { return e.Type == feed.Delivered && e.Message.ID == id })
}

// What an operator does to keys and leases, and to the cluster.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := openQueue(t, 3, longTTL, feed.Eldest, feed.Eldest, feed.Eldest)
	s.do(feed.Action{Do: feed.DeleteKey, On: "p1"})
	s.queued("p2", "p3", "p1")
	// It campaigns with the lease that does not exist once or twice, and then with another one.
	before, since := s.place("p3").Lease, s.Seq()
	s.do(feed.Action{Do: feed.RevokeLease, On: "p3"})
	s.queued("p2", "p1", "p3")
	require.NotEqual(t, before, s.place("p3").Lease)
	tries := slices.DeleteFunc(s.All(), func(e feed.Event) bool { return e.Seq <= since || !feedtest.Reported("p3", "joined")(e) })
	require.LessOrEqual(t, len(tries), 3)

	// Its request key is written a moment after its key.
	etcdtest.Eventually(t, func() bool { return s.Do(s.ctx, feed.Action{Do: feed.Transfer, On: "p3"}) == nil }, "a transfer to p3")
	s.Await(0, "p3 leads", feedtest.Reported("p3", "won"))
	s.queued("p3", "p1", "p2")
	err := s.Do(s.ctx, feed.Action{Do: feed.Transfer, On: "p3"})
	require.ErrorIs(t, err, feed.ErrRefused)

	// A key that belongs to no participant.
	orphan := keys.Candidate("jobs", 7)
	require.NoError(t, etcdtest.Err(s.field.All.Put(s.ctx, orphan, "nobody")))
	s.queued("p3", "p1", "p2", "")
	steps := len(s.Done().Steps)
	s.do(feed.Action{Do: feed.DeleteKey, Key: orphan})
	s.queued("p3", "p1", "p2")
	require.Len(t, s.Done().Steps, steps, "it could not be played again")
	s.do(feed.Action{Do: feed.DeleteKey, Key: s.place("p1").Key})
	s.queued("p3", "p2", "p1")
	require.Equal(t, feed.Action{Do: feed.DeleteKey, On: "p1"}, s.Done().Steps[steps].Action)

	s.do(feed.Action{Do: feed.Compact})
	is := func(want ...string) {
		t.Helper()
		etcdtest.Eventually(t, func() bool {
			var now []string
			for _, m := range s.Members() {
				now = append(now, m.State)
			}
			return slices.Equal(now, want)
		}, "the members are %v", want)
	}
	s.do(feed.Action{Do: feed.MoveLeader, Member: 0})
	is(feed.MemberLeads, feed.MemberFollows, feed.MemberFollows)
	s.do(feed.Action{Do: feed.MoveLeader, Member: 1})
	is(feed.MemberFollows, feed.MemberLeads, feed.MemberFollows)
	s.do(feed.Action{Do: feed.MemberStop, Member: 0})
	is(feed.MemberStopped, feed.MemberLeads, feed.MemberFollows)
	s.do(feed.Action{Do: feed.MemberKill, Member: 2})
	is(feed.MemberStopped, feed.MemberUnknown, feed.MemberDown)
	s.do(feed.Action{Do: feed.MemberContinue, Member: 0})
	s.do(feed.Action{Do: feed.MemberRestart, Member: 2})
	etcdtest.Eventually(t, func() bool {
		return slices.Equal(states(s.Newest(func(e feed.Event) bool { return e.Type == feed.Members })), []string{feed.MemberFollows, feed.MemberFollows, feed.MemberLeads})
	}, "all members serve")
	require.ErrorContains(t, s.Do(s.ctx, feed.Action{Do: feed.MemberContinue, Member: 2}), "only a stopped member")
}

// What makes no sense is refused, says what to do, and is not played again.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := open(t, 3, DefaultTTL, feed.Concurrency)
	s.do(feed.Action{Do: feed.Kill, On: "p1"})
	steps := len(s.Done().Steps)
	for want, a := range map[string]feed.Action{
		"unknown action":                 {Do: "dance"},
		"existing cluster":               {Do: feed.Evict, Key: "k"},
		"p1 is dead: restart it first":   {Do: feed.Stop, On: "p1"},
		"p1 is dead":                     {Do: feed.Kill, On: "p1"},
		"no participant \"p2\"":          {Do: feed.Hold, On: "p2"},
		"needs a participant":            {Do: feed.Resign},
		"needs a message":                {Do: feed.Release},
		"unknown kind of participant":    {Do: feed.Add, Kind: "raft"},
		"cannot be taken out":            {Do: feed.Add, Kind: feed.Herd, Rule: participant.Majority},
		"of the kind concurrency":        {Do: feed.SetRule, On: "p1", Rule: participant.Majority},
		"unknown rule":                   {Do: feed.SetRule, On: "p1", Rule: "gravity"},
		"unknown way":                    {Do: feed.Cut, On: "p1", Way: "sideways"},
		"a delay of -1 ms":               {Do: feed.Delay, On: "p1", MS: -1},
		"a delay of NaN ms":              {Do: feed.Delay, On: "p1", MS: math.NaN()},
		"unknown kind of messages":       {Do: feed.Breakpoint, On: "p1", Breakpoints: []string{"Txn letter"}},
		"there is no member 3":           {Do: feed.MemberKill, Member: 3},
		"m1 is running: kill it first":   {Do: feed.MemberRestart},
		"no key \"jobs/1\" in the queue": {Do: feed.DeleteKey, Key: "jobs/1"},
		"message 99 is not held":         {Do: feed.Drop, Message: 99},
		"p1 is dead: restart":            {Do: feed.Drop, On: "p1"},
	} {
		err := s.Do(s.ctx, a)
		require.ErrorIs(t, err, feed.ErrRefused, want)
		require.ErrorContains(t, err, want)
		acted := s.Newest(feedtest.IsAction)
		require.Equal(t, a.Do, acted.Action.Do)
		require.Equal(t, err.Error(), acted.Error)
	}
	require.Len(t, s.Done().Steps, steps)
	since := s.Seq()
	for want, a := range map[string]feed.Action{
		"play is not an action": {Do: feed.Play},
		"33 breakpoints":        {Do: feed.Breakpoint, On: "p1", Breakpoints: make([]string, 33)},
		"a text of 2000 bytes":  {Do: feed.Kill, On: strings.Repeat("x", 2000)},
	} {
		err := s.Do(s.ctx, a)
		require.ErrorIs(t, err, feed.ErrRefused, want)
		require.ErrorContains(t, err, want)
	}
	_, logged := s.Find(since, feedtest.IsAction)
	require.False(t, logged, "the page begins anew at an event of play")

	add := feed.Step{Action: feed.Action{Do: feed.Add, Kind: feed.Eldest}}
	on := func(who string) feed.Step { return feed.Step{Action: feed.Action{Do: feed.Kill, On: who}} }
	after := func(ms float64) feed.Step { return feed.Step{AfterMS: ms, Action: add.Action} }
	for want, steps := range map[string][]feed.Step{
		"501 steps":              make([]feed.Step, 501),
		"step 1: not done":       {{}},
		"has no steps":           {},
		"step 1: play is not":    {{Action: feed.Action{Do: feed.Play}}},
		"step 1: there is no":    {on("p1"), add},
		"step 2: there is no":    {add, on("p01")},
		"messages have other":    {add, {Action: feed.Action{Do: feed.Drop, Message: 3}}},
		"-1 ms after":            {after(-1)},
		"takes longer than 10m":  {after(400_000), after(400_000)},
		"NaN ms after":           {after(math.NaN())},
		"unknown action \"reset": {{Action: feed.Action{Do: feed.Reset}}},
	} {
		err := s.Play(s.ctx, feed.Scenario{Steps: steps})
		require.ErrorIs(t, err, feed.ErrRefused, want)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, feed.Dead, s.Participant("p1").Life, "nothing has begun")

	s.cfg.Executable = "/nonexistent"
	require.ErrorContains(t, s.Do(s.ctx, feed.Action{Do: feed.SetRule, On: "p1", Rule: participant.Guard}), "start p1")
	require.Equal(t, participant.Guard, s.Participant("p1").Rule, "what it has then is shown")
}

// An action ends when the process that it is about does, and does not succeed then.
func TestKilledMeanwhile(t *testing.T) {
	t.Parallel()
	s := openQueue(t, 1, longTTL, feed.Eldest, feed.Eldest)
	s.Await(0, "p1 leads", feedtest.Reported("p1", "won"))
	for who, kill := range map[string]func(){
		"p1": func() { s.do(feed.Action{Do: feed.Kill, On: "p1"}) },
		"p2": func() { require.NoError(t, syscall.Kill(s.Participant("p2").Pid, syscall.SIGKILL)) },
	} {
		s.do(feed.Action{Do: feed.Hold, On: who})
		since := s.Seq()
		leaves := etcdtest.Go(func() error { return s.Do(s.ctx, feed.Action{Do: feed.Leave, On: who}) })
		s.Await(since, "it is leaving", feedtest.Reported(who, "leaving"))
		kill()
		err := etcdtest.Take(t, leaves, "leave ends")
		require.ErrorContains(t, err, who+" ended before it had left")
		require.NotErrorIs(t, err, feed.ErrRefused)
		require.Equal(t, feed.Dead, s.Participant(who).Life)
		for _, e := range s.All() {
			require.False(t, e.Seq > since && e.Type == feed.Participant && e.Who == who && e.Participant.Life == feed.Left)
		}
	}

	// It cannot enter, and so it does not resign. Nothing tells when it has begun to.
	var err error
	for patience := 200 * time.Millisecond; ; patience *= 2 {
		s.do(feed.Action{Do: feed.Restart, On: "p1"})
		resigns := etcdtest.Go(func() error { return s.Do(s.ctx, feed.Action{Do: feed.Resign, On: "p1"}) })
		time.Sleep(patience)
		s.do(feed.Action{Do: feed.Kill, On: "p1"})
		if err = etcdtest.Take(t, resigns, "resign ends"); !errors.Is(err, feed.ErrRefused) {
			break
		}
	}
	require.ErrorContains(t, err, "p1 ended meanwhile: restart it")
	s.do(feed.Action{Do: feed.Leave, On: "p1"})
	require.Equal(t, feed.Left, s.Participant("p1").Life)
}

// Without etcd, actions that need it are refused at once, and neither a beginning nor the end waits for
// keepers.
func TestWithoutEtcd(t *testing.T) {
	t.Parallel()
	s := openQueue(t, 3, longTTL, feed.Keeper)
	killed := func() (keeper int) {
		keeper = s.Participant("p1").KeeperPid
		for member, do := range []string{feed.MemberStop, feed.MemberKill, feed.MemberKill} {
			s.do(feed.Action{Do: do, Member: member})
		}
		return keeper
	}
	keeper := killed()
	began := time.Now()
	for _, a := range []feed.Action{{Do: feed.Compact}, {Do: feed.DeleteKey, On: "p1"}, {Do: feed.RevokeLease, On: "p1"}, {Do: feed.Transfer, On: "p1"}} {
		err := s.Do(s.ctx, a)
		require.ErrorIs(t, err, feed.ErrRefused)
		require.ErrorContains(t, err, "no member of etcd runs: restart one")
	}
	add := feed.Step{Action: feed.Action{Do: feed.Add, Kind: feed.Keeper}}
	require.NoError(t, s.Play(s.ctx, feed.Scenario{Steps: []feed.Step{add}}), "the members serve again")
	since := s.Newest(func(e feed.Event) bool { return e.Type == feed.Acted && e.Action.Do == feed.Play }).Seq
	require.Less(t, time.Since(began), longTTL/2, "no lease had to expire")
	require.False(t, alive(keeper))
	require.NotContains(t, s.stopped, true, "all were continued")
	s.Await(since, "p1 leads", feedtest.Reported("p1", "won"))
	keeper = killed()
	s.do(feed.Action{Do: feed.Kill, On: "p1"})
	s.do(feed.Action{Do: feed.Restart, On: "p1"})
	next := s.Participant("p1").KeeperPid
	require.True(t, alive(keeper) && alive(next))
	began = time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(began), longTTL/2)
	require.False(t, alive(keeper) || alive(next))
}

// What was done can be played, however long it took, and however much it was.
func TestDoneCanBePlayed(t *testing.T) {
	s := &Sandbox{}
	e := newEra(0)
	for i := range mostSteps + 1 {
		e.record(float64(i)*feed.Milliseconds(time.Hour), feed.Action{Do: feed.Add, Kind: feed.Eldest})
	}
	scenario := e.scenario()
	require.NoError(t, s.checkScenario(scenario))
	require.Len(t, scenario.Steps, mostSteps)
	require.Contains(t, scenario.Name, "cut off")

	e = newEra(0)
	e.record(1000, feed.Action{Do: feed.Add, Kind: feed.Eldest})
	e.record(feed.Milliseconds(time.Hour), feed.Action{Do: feed.Kill, On: "p1"})
	scenario = e.scenario()
	require.Empty(t, scenario.Name)
	require.EqualValues(t, 1000, scenario.Steps[0].AfterMS)
	require.InDelta(t, feed.Milliseconds(mostGap), scenario.Steps[1].AfterMS, 0)
}

func TestBrief(t *testing.T) {
	require.NoError(t, brief(nil))
	require.EqualError(t, brief(feed.ErrRefused), feed.ErrRefused.Error())
	require.EqualError(t, brief(errors.New("m1 ended\n the log\nof\netcd")), "m1 ended: the log")
}

func TestInvalid(t *testing.T) {
	fine := Config{Members: 3, TTL: DefaultTTL}
	require.NoError(t, fine.Check())
	for name, change := range map[string]func(*Config){
		"two members":   func(c *Config) { c.Members = 2 },
		"a short TTL":   func(c *Config) { c.TTL = time.Second },
		"half a second": func(c *Config) { c.TTL = 2500 * time.Millisecond },
		"a directory":   func(c *Config) { c.Election = "a/b" },
	} {
		cfg := fine
		change(&cfg)
		_, err := Open(t.Context(), cfg)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}
