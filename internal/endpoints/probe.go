package endpoints

import (
	"context"
	"sync"
	"time"
)

// probing bounds the request that checks an endpoint.
const probing = 2 * time.Second

// reached is a member that answered at an endpoint.
type reached struct {
	endpoint string
	id       uint64
}

// probe asks all endpoints at once which member of the cluster they are, each on a connection of
// its own with the client's credentials. It returns those that answered in time, in the order of
// the endpoints, and blocks for no longer than probing.
func (s *set) probe(endpoints []string) (answered []reached) {
	ctx, cancel := context.WithTimeout(s.client.Ctx(), probing)
	defer cancel()
	ids := make([]uint64, len(endpoints)) // 0: no answer
	var all sync.WaitGroup
	for i, endpoint := range endpoints {
		all.Go(func() {
			if resp, err := s.client.Status(ctx, endpoint); err == nil && resp.Header.GetClusterId() == s.cluster {
				ids[i] = resp.Header.GetMemberId()
			}
		})
	}
	all.Wait()
	for i, endpoint := range endpoints {
		if ids[i] != 0 {
			answered = append(answered, reached{endpoint, ids[i]})
		}
	}
	return answered
}
