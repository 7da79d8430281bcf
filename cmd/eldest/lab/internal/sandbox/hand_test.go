package sandbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// An answer to a renewal is held for almost half a TTL, and the renewals after it for ever: two
// leaders of etcd's package are sure that they lead, because the first one counts its lease from the
// release of the answer. Two of Eldest are not, because it counts from the moment before it asked.
func TestTwoLeadersByHand(t *testing.T) {
	t.Parallel()
	// Long enough for a busy machine to do its part between a renewal and its expiry.
	const ttl = 6 * time.Second
	t.Run(string(feed.Eldest), func(t *testing.T) {
		t.Parallel()
		s := open(t, 1, ttl)
		require.False(t, s.twoLead(feed.Eldest))
		second := s.Newest(feedtest.Reported("p2", "sure"))
		s.Await(0, "p2 goes on leading", func(e feed.Event) bool {
			return feedtest.Reported("p2", "sure")(e) && e.AtMS > second.AtMS+500
		})
	})
	t.Run(string(feed.Concurrency), func(t *testing.T) {
		t.Parallel()
		s := open(t, 1, ttl)
		// A new leader of etcd restarts all leases: on a very busy machine p1's may last longer.
		for attempt := 1; !s.twoLead(feed.Concurrency); attempt++ {
			require.Less(t, attempt, 5)
		}
	})
}

// twoLead tries to make two leaders, and reports whether there were two.
func (s *stage) twoLead(kind feed.Kind) bool {
	s.t.Helper()
	require.NoError(s.t, s.Play(s.ctx, feed.Scenario{Steps: []feed.Step{{Action: feed.Action{Do: feed.Add, Kind: kind}}}}))
	since := s.Newest(func(e feed.Event) bool { return e.Type == feed.Acted && e.Action.Do == feed.Play }).Seq
	token := s.Await(since, "p1 is sure that it leads", feedtest.Reported("p1", "sure")).Report.Token
	s.do(feed.Action{Do: feed.Add, Kind: kind})
	s.queued("p1", "p2")

	const ask, answer = "LeaseKeepAlive request", "LeaseKeepAlive answer"
	s.do(feed.Action{Do: feed.Breakpoint, On: "p1", Breakpoints: []string{ask, answer}})
	isHeld := func() bool {
		_, ok := s.Find(since, func(e feed.Event) bool {
			return e.Type == feed.Held && e.Who == "p1" && s.Sent(e.Message.ID).Message.Kind == "answer"
		})
		return ok
	}
	etcdtest.Eventually(s.t, func() bool {
		if !isHeld() {
			// Its call may have ended meanwhile: Eldest does not wait for long.
			_ = s.Do(s.ctx, feed.Action{Do: feed.Release, On: "p1", Match: ask})
		}
		return isHeld()
	}, "an answer to a renewal is held")
	etcdtest.Eventually(s.t, func() bool {
		for _, p := range s.Places("") {
			if p.Who == "p1" && p.LeftMS > 3500 {
				return false
			}
		}
		return true
	}, "the lease of p1 has 3.5 s left")
	if err := s.Do(s.ctx, feed.Action{Do: feed.Release, On: "p1", Match: answer}); kind == feed.Concurrency {
		require.NoError(s.t, err)
	}

	second := s.Await(since, "p2 is sure that it leads", feedtest.Reported("p2", "sure"))
	decisive := s.Await(since, "p1 is sure as well, or not any more", func(e feed.Event) bool {
		if e.Type != feed.Report || e.Who != "p1" || e.Report.Token != token {
			return false
		}
		return e.Report.Kind == "not sure" || e.Report.Kind == "sure" && e.AtMS > second.AtMS
	})
	return decisive.Report.Kind == "sure"
}

// What was done can be played again, with the same outcome, and then names and messages begin anew.
func TestPlay(t *testing.T) {
	t.Parallel()
	s := open(t, 3, longTTL)
	// The reports of each participant, in their order.
	story := func(since int64) map[string][]string {
		told := map[string][]string{}
		for _, e := range s.All() {
			if e.Seq > since && feedtest.Reported(e.Who, "joined", "won", "ended")(e) {
				told[e.Who] = append(told[e.Who], e.Report.Kind)
			}
		}
		return told
	}
	// settled waits for the last reports of the story, which come on another way than the queue.
	settled := func(since int64) {
		t.Helper()
		s.Await(since, "p2 leads", feedtest.Reported("p2", "won"))
		ended := s.Await(since, "p1 resigns", feedtest.Reported("p1", "ended"))
		s.Await(ended.Seq, "p1 has joined again", feedtest.Reported("p1", "joined"))
	}
	s.do(feed.Action{Do: feed.Add, Kind: feed.Eldest})
	s.Await(0, "p1 leads", feedtest.Reported("p1", "won"))
	s.do(feed.Action{Do: feed.Add, Kind: feed.Eldest})
	s.queued("p1", "p2")
	s.do(feed.Action{Do: feed.Resign, On: "p1"})
	settled(0)
	s.queued("p2", "p1")
	s.do(feed.Action{Do: feed.Breakpoint, On: "p2", Breakpoints: []string{"Txn request"}})
	s.do(feed.Action{Do: feed.Drop, On: "p2", Match: "Txn request"})
	s.do(feed.Action{Do: feed.Unhold, On: "p2"})
	want := map[string][]string{"p1": {"joined", "won", "ended", "joined"}, "p2": {"joined", "won"}}
	require.Equal(t, want, story(0))

	done := s.Done()
	var did []string
	for _, step := range done.Steps {
		did = append(did, step.Do)
	}
	require.Equal(t, []string{feed.Add, feed.Add, feed.Resign, feed.Breakpoint, feed.Drop, feed.Unhold}, did)
	require.Positive(t, done.Steps[1].AfterMS)
	for i := range 4 {
		done.Steps[i].AfterMS += 1000 // for a machine that is slower now
	}

	s.do(feed.Action{Do: feed.MemberStop, Member: 2}) // is healed
	pid := s.Participant("p2").Pid
	require.NoError(t, s.Play(s.ctx, done))
	require.False(t, alive(pid))
	begin := s.Newest(func(e feed.Event) bool { return e.Type == feed.Acted && e.Action.Do == feed.Play })
	require.Empty(t, begin.Error)
	s.Await(begin.Seq, "the last step", func(e feed.Event) bool { return e.Type == feed.Acted && e.Action.Do == feed.Unhold })
	for _, e := range s.All() {
		require.False(t, e.Seq > begin.Seq && e.Type == feed.Acted && e.Error != "", "%+v: %s", e.Action, e.Error)
	}
	settled(begin.Seq)
	s.queued("p2", "p1")
	require.Equal(t, want, story(begin.Seq))
	require.Len(t, s.Done().Steps, len(done.Steps), "the played steps were done as well")

	// Another Play ends one that has not ended, and Reset begins with the participants of Open: none.
	slow := feed.Scenario{Steps: []feed.Step{{AfterMS: 500_000, Action: feed.Action{Do: feed.Add, Kind: feed.Eldest}}}}
	require.NoError(t, s.Play(s.ctx, slow))
	s.do(feed.Action{Do: feed.Reset})
	require.Empty(t, s.Done().Steps)
	require.Equal(t, feed.Left, s.Participant("p1").Life)
	s.queued()
	for range 2 {
		s.do(feed.Action{Do: feed.Add, Kind: feed.Concurrency})
	}
	s.among("p1", "p2")
	order := s.order()
	err := s.Do(s.ctx, feed.Action{Do: feed.Transfer, On: order[1]})
	require.ErrorIs(t, err, feed.ErrRefused, "candidates of etcd's package take no part")
	require.Equal(t, order, s.order())
}

// Nothing is left when a sandbox is closed, whatever its participants are doing, and it does nothing
// any more.
func TestClose(t *testing.T) {
	t.Parallel()
	s := openQueue(t, 3, DefaultTTL, feed.Keeper, feed.Eldest, feed.Concurrency)
	s.do(feed.Action{Do: feed.Hold, On: "p2"})
	s.do(feed.Action{Do: feed.Cut, On: "p3"})
	s.do(feed.Action{Do: feed.Stop, On: "p1"})
	s.do(feed.Action{Do: feed.MemberStop, Member: 0})
	keeper := s.Participant("p1").KeeperPid
	pids := []int{keeper}
	for _, who := range s.order() {
		pids = append(pids, s.Participant(who).Pid)
	}
	waits := etcdtest.Go(func() error { return s.Do(s.ctx, feed.Action{Do: feed.Release, On: "p2", Match: "Txn end"}) })
	require.NoError(t, s.Close())
	require.Error(t, etcdtest.Take(t, waits, "the action ends"))
	for _, pid := range pids {
		require.Positive(t, pid)
		require.False(t, alive(pid), "process %d", pid)
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Do(s.ctx, feed.Action{Do: feed.Compact}), feed.ErrRefused)
	require.ErrorIs(t, s.Play(s.ctx, feed.Scenario{}), feed.ErrRefused)
}
