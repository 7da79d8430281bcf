package endpoints

import (
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// stage is a client of the first of three members, its set, and the members.
type stage struct {
	*etcdtest.Cluster
	client *clientv3.Client
	set    *set
	resp   *pb.MemberListResponse
}

// on makes the client's endpoints configured, of which the first must be member 0.
func on(t *testing.T, c *etcdtest.Cluster, configured ...string) *stage {
	t.Helper()
	client, err := Dial(clientv3.Config{Endpoints: configured, AutoSyncInterval: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	resp, err := client.MemberList(etcdtest.Context(t))
	require.NoError(t, err)
	require.Len(t, resp.Members, 3)
	return &stage{c, client, newSet(client, probing(clientv3.Config{Endpoints: configured}, client, new(token)), false, time.Minute), (*pb.MemberListResponse)(resp)}
}

// member is the entry of member i in the list.
func (s *stage) member(i int) *pb.Member {
	for _, m := range s.resp.Members {
		if m.ID == s.Member(i).ID() {
			return m
		}
	}
	panic("not in the list")
}

func (s *stage) url(i int) string { return s.Member(i).Endpoint }

// TestWhichMembersAreAdded: a member is added by the URL that answers as that member, and URLs that are
// of no use change nothing.
//
// Fails when URLs are added without being asked.
func TestWhichMembersAreAdded(t *testing.T) {
	t.Parallel()
	c := Three(t)
	foreign := etcdtest.Start(t, etcdtest.Config{})
	for name, tc := range map[string]struct {
		alter func(s *stage)
		added []int // of members 1 and 2
	}{
		"all":                              {func(*stage) {}, []int{1, 2}},
		"learner":                          {func(s *stage) { s.member(1).IsLearner = true }, []int{2}},
		"not started":                      {func(s *stage) { s.member(1).Name, s.member(1).ClientURLs = "", nil }, []int{2}},
		"no URL":                           {func(s *stage) { s.member(1).ClientURLs = nil }, []int{2}},
		"refuses connections":              {func(s *stage) { s.member(1).ClientURLs = []string{"http://0.0.0.0:1"} }, []int{2}},
		"no address":                       {func(s *stage) { s.member(1).ClientURLs = []string{"", "x", "http://", "unix:", "http://\x00"} }, []int{2}},
		"address of a configured endpoint": {func(s *stage) { s.member(1).ClientURLs = []string{s.url(0)} }, []int{2}},
		"another member": {func(s *stage) {
			s.member(1).ClientURLs = []string{strings.Replace(s.url(0), "127.0.0.1", "localhost", 1)}
		}, []int{2}},
		"another cluster": {func(s *stage) { s.member(1).ClientURLs = []string{foreign.Member(0).Endpoint} }, []int{2}},
		"TLS, as configured not": {func(s *stage) {
			s.member(1).ClientURLs = []string{strings.Replace(s.url(1), "http:", "https:", 1)}
		}, []int{2}},
		"no TLS, as configured": {func(s *stage) { s.set.tls = true }, nil},
		"the second URL":        {func(s *stage) { s.member(1).ClientURLs = []string{"http://127.0.0.1:1", s.url(1)} }, []int{1, 2}},
		"of a gRPC proxy":       {func(s *stage) { s.member(1).ID = 0 }, nil},
		"without a cluster":     {func(s *stage) { s.resp.Header.ClusterId = 0 }, nil},
		"nothing":               {func(s *stage) { s.resp.Members = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := on(t, c, c.Member(0).Endpoint)
			tc.alter(s)
			s.set.update(read(s.resp))
			want := []string{s.url(0)}
			for _, m := range s.resp.Members { // the order of the list
				for _, i := range tc.added {
					if m.ID == s.Member(i).ID() {
						want = append(want, s.url(i))
					}
				}
			}
			require.Equal(t, want, s.client.Endpoints(), "which URLs became endpoints")
		})
	}
}

// TestOtherNames: a member that a configured endpoint reaches by another name is not added, and an
// address that is written in another way is the same address.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	c := Three(t)
	configured := []string{strings.TrimPrefix(c.Member(0).Endpoint, "http://")}
	s := on(t, c, configured[0], strings.Replace(c.Member(1).Endpoint, "127.0.0.1", "localhost", 1))
	s.set.update(read(s.resp))
	require.Equal(t, append(slices.Clone(s.set.configured), s.url(2)), s.client.Endpoints())
	clear(s.set.failed)
	require.Empty(t, s.set.missing(read(s.resp)), "it is not asked again")
}

// TestMembersLeave: a member is removed when the list no longer has it; the configured endpoints are
// not, whatever the list has.
func TestMembersLeave(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, c.Member(0).Endpoint, "127.0.0.1:1")
	configured := slices.Clone(s.set.configured)
	s.set.update(read(s.resp))
	require.Len(t, s.client.Endpoints(), 4)
	whole := slices.Clone(s.resp.Members)

	// A list of another cluster, such as one that got the address of a former member, is ignored.
	s.resp.Members = nil
	s.resp.Header.ClusterId++
	s.set.update(read(s.resp))
	require.Len(t, s.client.Endpoints(), 4)
	require.NotEmpty(t, s.set.probe(c.Endpoints()))
	s.resp.Header.ClusterId--
	s.resp.Members = whole

	s.resp.Members = []*pb.Member{s.member(2)}
	s.set.update(read(s.resp))
	require.Equal(t, append(slices.Clone(configured), s.url(2)), s.client.Endpoints())
	s.resp.Members = nil
	s.set.update(read(s.resp))
	require.Equal(t, configured, s.client.Endpoints())
}

// TestEndpointsOfTheProgram: what the program sets is kept as if it were configured.
func TestEndpointsOfTheProgram(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, c.Member(0).Endpoint)
	s.set.update(read(s.resp))
	s.client.SetEndpoints("127.0.0.1:1", s.url(1))
	s.set.update(read(s.resp))
	require.Equal(t, []string{"127.0.0.1:1", s.url(1)}, s.client.Endpoints()[:2])
	require.ElementsMatch(t, []string{"127.0.0.1:1", s.url(0), s.url(1), s.url(2)}, s.client.Endpoints())
}

// TestNoEndpointAnswers: a URL is not used while nothing shows that the client's own endpoints answer.
func TestNoEndpointAnswers(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, c.Member(0).Endpoint)
	nowhere := []string{etcdtest.Nowhere(t)}
	s.client.SetEndpoints(nowhere...)
	s.set.update(read(s.resp))
	require.Equal(t, nowhere, s.client.Endpoints())
	require.Len(t, s.set.failed, 3, "they are asked again")
	s.set.cluster++
	require.Empty(t, s.set.probe(c.Endpoints()), "members of another cluster do not count")
}

// TestSyncWithoutURLs: endpoints that the program has emptied, as etcd's Sync can, are set again.
//
// Fails with a crash in etcd's client if probes use the client itself.
func TestSyncWithoutURLs(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, c.Endpoints()...)
	s.client.SetEndpoints()
	require.Empty(t, s.client.Endpoints())
	s.set.cluster = s.resp.Header.ClusterId
	require.Len(t, s.set.probe(c.Endpoints()), 3)
	s.set.update(read(s.resp))
	require.Equal(t, c.Endpoints(), s.client.Endpoints())
}

// balancer listens at an address, and passes each connection to the next member.
func balancer(t *testing.T, c *etcdtest.Cluster) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i++ {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", strings.TrimPrefix(c.Member(i%c.Size()).Endpoint, "http://"))
			if err != nil {
				_ = from.Close()
				continue
			}
			pass := func(a, b net.Conn) {
				_, _ = io.Copy(a, b)
				_, _ = a.Close(), b.Close()
			}
			all.Go(func() { pass(from, to) })
			all.Go(func() { pass(to, from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// TestBalancer: the endpoint is a balancer, in front of members that cannot be reached from here. It
// answers as another member each time. The pauses grow nevertheless.
//
// Fails if a member is forgotten that the balancer has answered as.
func TestBalancer(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, balancer(t, c))
	for _, m := range s.resp.Members {
		m.ClientURLs = []string{"https://127.0.0.1:1"} // not asked, and so the test is quick
	}
	for range 5 {
		for range c.Size() {
			s.set.update(read(s.resp))
		}
		require.Empty(t, s.set.missing(read(s.resp)), "no member is asked before its pause has passed")
		for id, is := range s.set.failed {
			s.set.failed[id] = retry{time.Now(), is.pause}
		}
	}
	require.Len(t, s.set.failed, 3)
	for id, is := range s.set.failed {
		require.GreaterOrEqual(t, is.pause, 24*time.Second, "member %x", id)
	}
	require.Len(t, s.client.Endpoints(), 1)
}

// TestFewProbes: a member that cannot be reached is asked again after a pause, which grows.
func TestFewProbes(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, c.Member(0).Endpoint)
	s.member(1).ClientURLs = []string{"http://127.0.0.1:1"}
	s.set.update(read(s.resp))
	require.Empty(t, s.set.missing(read(s.resp)))
	id := s.member(1).ID
	require.Equal(t, 6*time.Second, s.set.failed[id].pause)
	s.member(1).ClientURLs = []string{"https://127.0.0.1:1"} // not asked, and so the test is quick
	for last, next := range map[time.Duration]time.Duration{6 * time.Second: 12 * time.Second, 9 * time.Minute: 10 * time.Minute} {
		s.set.failed[id] = retry{time.Now(), last}
		s.set.update(read(s.resp))
		require.Equal(t, next, s.set.failed[id].pause)
	}
}

// TestFewProbesWithALongInterval: the longest interval has no shorter pauses.
func TestFewProbesWithALongInterval(t *testing.T) {
	t.Parallel()
	c := Three(t)
	s := on(t, c, c.Member(0).Endpoint)
	s.set.every = math.MaxInt64
	s.member(1).ClientURLs = []string{"https://127.0.0.1:1"} // not asked, and so the test is quick
	for range 2 {
		s.set.update(read(s.resp))
		require.Empty(t, s.set.missing(read(s.resp)))
		require.Greater(t, s.set.failed[s.member(1).ID].pause, time.Hour)
	}
}

func TestWhichEndpointsUseTLS(t *testing.T) {
	for endpoint, want := range map[string][2]bool{ // with TLS in the client's config, and without
		"a:1": {true, false}, "http://a:1": {false, false}, "https://a:1": {true, true}, "unixs:///a": {true, true}, "unix:///a": {true, false},
	} {
		require.Equal(t, want, [2]bool{encrypted(endpoint, true), encrypted(endpoint, false)}, endpoint)
	}
	require.Equal(t, "a:1", address("https://a:1"))
	require.Equal(t, "a:1", address("a:1"))
	require.Equal(t, "[::1]:1", address("http://[::1]:1"))
}
