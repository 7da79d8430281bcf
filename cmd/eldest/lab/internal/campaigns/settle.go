package campaigns

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// leaving bounds the end of a scenario.
const leaving = 10 * time.Second

// watchesAtFirst returns how many watches a candidate has before it waits for another one: Eldest's
// watches its own key.
func (s *scene) watchesAtFirst() int {
	if s.Contender == contender.Eldest {
		return 1
	}
	return 0
}

// looks returns the least number of reads, besides transactions, that a candidate makes when it
// begins to wait: etcd's reads its predecessor; Eldest's checks that its predecessor still exists
// only if something else has changed meanwhile.
func (s *scene) looks() int {
	if s.Contender == contender.Eldest {
		return 0
	}
	return 1
}

// settled waits until a lane has created that many watches, has received the answers to that many
// reads, and has no unary request without an answer.
func (s *scene) settled(ctx context.Context, lane string, watches, reads int) error {
	return s.wire.Await(ctx, func(messages []wiretap.Message) bool {
		created, answered, owed := 0, 0, 0
		for i := range messages {
			m := &messages[i]
			if m.Lane != lane || m.Kind == wiretap.Note {
				continue
			}
			if !m.Stream {
				switch m.Kind {
				case wiretap.Request:
					owed++
				case wiretap.Answer, wiretap.End:
					owed--
				case wiretap.Note:
				}
			}
			switch r := m.Body.(type) {
			case *etcdserverpb.WatchResponse:
				if r.Created {
					created++
				}
			case *etcdserverpb.RangeResponse:
				answered++
			}
		}
		return created >= watches && answered >= reads && owed == 0
	})
}

// renewed waits until every lease has been renewed. A candidate of Eldest asks a majority after
// each answer (MemberList); that request must have been answered, too.
func (s *scene) renewed(ctx context.Context) error {
	return s.wire.Await(ctx, func(messages []wiretap.Message) bool {
		lanes := make(map[string]bool)
		for i := range messages {
			switch messages[i].Body.(type) {
			case *etcdserverpb.LeaseKeepAliveResponse:
				if s.Contender == contender.Concurrency {
					lanes[messages[i].Lane] = true
				}
			case *etcdserverpb.MemberListResponse:
				lanes[messages[i].Lane] = true
			}
		}
		return len(lanes) >= len(s.members)
	})
}
