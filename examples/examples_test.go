package examples_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// The examples are built as a reader builds them, and do what their comments promise. The tests of the command shards
// are in TestShards: they take longer, and need no other program.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := newStage(t, "elector", "curator", "client")
	t.Run("elector", s.elector)
	t.Run("service, asked of etcd", func(t *testing.T) {
		t.Parallel()
		s.service(t, "plain", insecure.NewCredentials(), nil, func([]string) []string { return []string{"--endpoints", s.endpoints} })
	})
	t.Run("service with TLS, asked of the nodes", func(t *testing.T) {
		t.Parallel()
		authority := etcdtest.NewAuthority(t)
		s.service(t, "secure", credentials.NewClientTLSFromCert(authority.Pool, "secure"),
			func(id string) []string {
				cert, key := authority.Files(authority.Issue(id, "secure"))
				return []string{"--cert", cert, "--key", key, "--cacert", authority.File}
			},
			func(nodes []string) []string {
				return []string{"--nodes", strings.Join(nodes, ","), "--cacert", authority.File}
			})
	})
	t.Run("bad flags", func(t *testing.T) {
		s.start(t, "elector").ends(1)
		s.start(t, "curator").ends(1)
		s.start(t, "curator", "--node", "n1", "--cert", "x").ends(1)
		s.start(t, "client", "--nodes", ",").ends(1)
	})
}

type stage struct {
	etcd      *etcdtest.Cluster
	endpoints string
	programs  string
}

// newStage starts an etcd, and builds programs.
func newStage(t *testing.T, programs ...string) stage {
	t.Helper()
	etcd := etcdtest.Start(t, etcdtest.Config{})
	return stage{etcd: etcd, endpoints: strings.Join(etcd.Endpoints(), ","), programs: build(t, programs...)}
}

// elector: one of two nodes counts; the other one continues the count, and each number is written
// once.
func (s stage) elector(t *testing.T) {
	t.Parallel()
	node := func(id string) *process {
		return s.start(t, "elector", "--node", id, "--endpoints", s.endpoints, "--ttl", "30s") // no node is killed
	}
	counted := func(p *process) int {
		n, err := strconv.Atoi(p.until(`^\S+ counted (\d+)$`))
		require.NoError(t, err)
		return n
	}
	a := node("a")
	require.Equal(t, 1, counted(a))
	require.Equal(t, 2, counted(a))
	b := node("b")
	a.signal(syscall.SIGTERM)
	a.until(`^a (has led)$`)
	a.ends(0)
	// The signal may have arrived during a write, which was carried out and not printed. etcd has
	// the number of writes: it is the version of the key.
	require.Greater(t, counted(b), 2)
	resp, err := s.etcd.Client(t).Get(t.Context(), "count-of/counting")
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(resp.Kvs[0].Version, 10), string(resp.Kvs[0].Value), "lost, or written twice")
	b.signal(os.Interrupt)
	b.ends(0)
}

// service: a client counts, while one leader is killed and the next one is stopped. The client
// continues, and each number is written once. creds are the credentials of a client that dials a
// node; nodeFlags and clientFlags add flags.
func (s stage) service(t *testing.T, election string, creds credentials.TransportCredentials,
	nodeFlags func(id string) []string, clientFlags func(addresses []string) []string,
) {
	var addresses []string
	node := func(id string) *process {
		flags := []string{"--election", election, "--node", id, "--endpoints", s.endpoints, "--ttl", "8s", "--http", "127.0.0.1:0"}
		if nodeFlags != nil {
			flags = append(flags, nodeFlags(id)...)
		}
		p := s.start(t, "curator", flags...)
		addresses = append(addresses, p.until(`^listening at (\S+)$`))
		p.role = p.until(`^reporting the role at (\S+)$`)
		return p
	}
	n1 := node("n1")
	n1.until(`^(leading) with token \d+$`)
	n2 := node("n2")
	n2.until(`^following (n1) at `) // so that it is the next one
	n3 := node("n3")
	n3.until(`^following (n1) at `)
	require.Equal(t, http.StatusOK, n1.status())
	require.Equal(t, http.StatusServiceUnavailable, n2.status())

	client := s.start(t, "client", append([]string{"--election", election, "--every", "20ms", "--timeout", "20s"}, clientFlags(addresses)...)...)
	last := 0
	counted := func(line string) {
		t.Helper()
		last++
		require.Equal(t, "counted "+strconv.Itoa(last), line)
	}
	counts := func(times int) {
		t.Helper()
		for range times {
			counted("counted " + client.until(`^counted (\d+)$`))
		}
	}
	counts(5)
	throughFollower(t, addresses[2], creds)
	n1.signal(syscall.SIGKILL)
	n2.until(`^(leading) with token \d+$`)
	require.Equal(t, http.StatusOK, n2.status())
	client.drain(counted) // the lines before the end
	counts(5)
	n3.until(`^following (n2) at `)
	n2.signal(syscall.SIGTERM)
	n3.until(`^(leading) with token \d+$`)
	n2.ends(0)
	client.drain(counted)
	counts(5)
	client.signal(syscall.SIGTERM)
	client.ends(0)
	n3.signal(syscall.SIGTERM)
	n3.ends(0)

	trail, err := kv.SpaceOf(election).ReadTrail(t.Context(), s.etcd.Client(t))
	require.NoError(t, err)
	written, tenures := 0, 0
	for _, record := range trail {
		if record.GetMethod() == kvpb.Record_METHOD_OPEN {
			tenures++
			continue
		}
		written++
		require.Equal(t, strconv.Itoa(written), string(record.GetValue()), "lost, or written twice")
	}
	require.Equal(t, 3, tenures)
	require.GreaterOrEqual(t, written, last)
}

// throughFollower calls a node that does not lead: the connection between nodes works, and is as
// secure as the client's.
func throughFollower(t *testing.T, address string, creds credentials.TransportCredentials) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	item, err := kvpb.NewKVClient(conn).Get(ctx, &kvpb.GetRequest{Key: "counts/client"})
	require.NoError(t, err)
	require.NotEmpty(t, item.GetValue())
}
