package clusterview

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
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
	var last []feed.MemberState
	var names map[uint64]string
	var named time.Time
	for ctx.Err() == nil {
		pause := idle
		if v.log.Read() {
			if names == nil || time.Since(named) > namesAge {
				names, named = v.memberNames(ctx, names), time.Now()
			}
			now := v.members(ctx, names)
			if ctx.Err() != nil {
				return // the answers are those of an end
			}
			if !slices.Equal(now, last) {
				last = now
				v.log.Add(feed.Event{Type: feed.Members, Members: now})
			}
			pause = memberRound
		}
		sleep(ctx, pause)
	}
}

// memberNames returns the names of the members; the former ones if etcd does not answer.
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

// members asks all endpoints at the same time.
func (v *View) members(ctx context.Context, names map[uint64]string) []feed.MemberState {
	endpoints := v.cfg.Conn.Endpoints
	all := make([]feed.MemberState, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() {
			all[i] = v.member(ctx, endpoint, names)
			all[i].Endpoint = v.endpoints[i]
			all[i].Name = cmp.Or(all[i].Name, v.endpoints[i])
		})
	}
	asking.Wait()
	return all
}

// member asks one endpoint.
func (v *View) member(ctx context.Context, endpoint string, names map[uint64]string) feed.MemberState {
	once, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := v.cfg.Client.Status(once, endpoint)
	if err != nil {
		if connect.Silent(err) {
			return feed.MemberState{State: feed.MemberDown}
		}
		v.failed(ctx, err)
		return feed.MemberState{State: feed.MemberUnknown}
	}
	m := feed.MemberState{
		Name: names[status.Header.MemberId], State: feed.MemberFollows, Revision: status.Header.Revision, RaftTerm: status.RaftTerm,
	}
	switch status.Leader {
	case status.Header.MemberId:
		m.State = feed.MemberLeads
	case 0: // it knows no leader
		m.State = feed.MemberUnknown
	}
	return m
}
