package clusterview

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/retry"
)

const (
	// memberRound is the time between two requests for the status of a member.
	memberRound = 2 * time.Second
	// statusTimeout bounds such a request.
	statusTimeout = 1500 * time.Millisecond
	// namesAge is how long the names of the members are valid.
	namesAge = 30 * time.Second
)

// pollMembers asks each endpoint for its status, while a page is open, until ctx ends.
func (v *View) pollMembers(ctx context.Context) {
	last := make([]feed.MemberState, len(v.endpoints))
	for i, endpoint := range v.endpoints {
		last[i] = feed.MemberState{Name: endpoint, Endpoint: endpoint}
	}
	var names map[uint64]string
	var named time.Time
	for pause := idle; retry.Sleep(ctx, pause) == nil; {
		if pause = idle; !v.log.Read() {
			continue
		}
		pause = memberRound
		if names == nil || time.Since(named) > namesAge {
			names, named = v.memberNames(ctx, names), time.Now()
		}
		now := slices.Clone(last)
		var asking sync.WaitGroup
		for i, endpoint := range v.cfg.Conn.Endpoints {
			asking.Go(func() { v.askMember(ctx, endpoint, names, &now[i]) })
		}
		asking.Wait()
		if ctx.Err() == nil && !slices.Equal(now, last) { // else the answers are those of an end
			last = now
			v.log.Add(feed.Event{Type: feed.Members, Members: now})
		}
	}
}

// memberNames returns the names of the members, by ID; the former ones if etcd does not answer.
func (v *View) memberNames(ctx context.Context, former map[uint64]string) map[uint64]string {
	once, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	list, err := v.cfg.Client.MemberList(once)
	if err != nil {
		return former // pollMembers shows that members are down, and follow why
	}
	names := map[uint64]string{}
	for _, m := range list.Members {
		names[m.ID] = m.Name
	}
	return names
}

// askMember sets the state of a member. One that does not answer keeps its name.
func (v *View) askMember(ctx context.Context, endpoint string, names map[uint64]string, m *feed.MemberState) {
	once, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	m.State, m.Revision, m.RaftTerm = feed.MemberDown, 0, 0
	status, err := v.cfg.Client.Status(once, endpoint)
	if err != nil {
		if !connect.Silent(err) {
			m.State = feed.MemberUnknown
			v.failed(ctx, err)
		}
		return
	}
	m.Name = cmp.Or(names[status.Header.MemberId], m.Name)
	m.State, m.Revision, m.RaftTerm = feed.MemberFollows, status.Header.Revision, status.RaftTerm
	switch status.Leader {
	case status.Header.MemberId:
		m.State = feed.MemberLeads
	case 0: // it knows no leader
		m.State = feed.MemberUnknown
	}
}
