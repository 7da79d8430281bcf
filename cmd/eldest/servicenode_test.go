package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

func TestBadUsageOfService(t *testing.T) {
	for line, reason := range map[string]string{
		"service surplus":                               "surplus",
		"service --ttl 1s":                              "a TTL of 1s",
		"service --rounds 0":                            "0 rounds",
		"service --seed x":                              "x",
		"service node":                                  "accepts 2 arg(s)",
		"service node shop":                             "accepts 2 arg(s)",
		"service node a/b n1":                           "a/b",
		"service node shop n1 --ttl 0s":                 "--ttl 0s",
		"service node shop n1 --listen 0.0.0.0:0":       "--advertise",
		"service node shop n1 --listen :27301":          "--listen :27301: it must name a host that the other nodes can dial; or use --advertise",
		"service node shop n1 --listen [::]:0":          "--advertise",
		"service node shop n1 --listen 7001":            `--listen "7001"`,
		"service node shop n1 --listen 127.0.0.1:x":     `"x" is no port`,
		"service node shop n1 --listen 127.0.0.1:":      `"" is no port`,
		"service node shop n1 --listen 127.0.0.1:99999": `"99999" is no port`,
		"service node shop n1 --endpoints nonsense":     "--endpoints",
		"service node shop " + strings.Repeat("x", 1e6): "",
	} {
		t.Run(line[:min(len(line), 60)], func(t *testing.T) {
			code, stdout, stderr := runLine(t, strings.Fields(line)...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, reason)
			require.Empty(t, stdout)
		})
	}
	code, _, stderr := runLine(t, "service", "node", "shop", "")
	require.Equal(t, exitUsage, code, stderr)
}

// nodeTTL is one that a busy machine does not let run out.
const nodeTTL = 30 * time.Second

// serviceNode starts a node and returns it with the address at which it listens.
func serviceNode(t *testing.T, id string, more ...string) (p *process, address string) {
	t.Helper()
	p = start(t, append([]string{"service", "node", "shop", id, "--json", "--ttl", nodeTTL.String()}, more...)...)
	listening := p.event("listening")
	require.Equal(t, "shop", listening["election"])
	require.Equal(t, id, listening["node"])
	return p, listening["address"].(string)
}

// becomes reads statuses up to one with the role.
func (p *process) becomes(role string) object {
	p.t.Helper()
	for {
		if o := p.event("status"); o["role"] == role {
			return o
		}
		// Those in between may be skipped, or be told.
	}
}

func TestServiceNodes(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	a, addressA := serviceNode(t, "a")
	led := a.becomes("leading")
	b, addressB := serviceNode(t, "b", "--listen", "127.0.0.1:0")
	followed := b.becomes("following")
	require.Equal(t, led["token"], followed["token"])
	require.Equal(t, "a", followed["leader"])
	require.Equal(t, addressA, followed["leader_address"])

	conn, err := grpc.NewClient(addressB, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	put, err := kvpb.NewKVClient(conn).Put(etcd.bounded(), &kvpb.PutRequest{RequestId: "r", Key: "k", Value: []byte("v")})
	require.NoError(t, err)
	require.EqualValues(t, led["token"], put.GetReceipt().GetToken())

	a.signal(syscall.SIGTERM)
	b.becomes("leading")
	require.Contains(t, a.becomes("neither")["reason"], "signal")
	a.ends(exitOK)
	item, err := kvpb.NewKVClient(conn).Get(etcd.bounded(), &kvpb.GetRequest{Key: "k"})
	require.NoError(t, err)
	require.Equal(t, "v", string(item.GetValue()))
	b.signal(os.Interrupt)
	b.ends(exitOK)
	require.Zero(t, etcd.leases())
}

// ends waits for the end, whatever the process still says.
func (p *process) ends(code int) {
	p.t.Helper()
	p.over()
	for range p.lines { // what is left
	}
	p.exits(code)
}

func TestServiceNodeForPeople(t *testing.T) {
	startEtcdProcess(t, "0")
	p := start(t, "service", "node", "shop", "n1", "--ttl", "30s", "--listen", "0.0.0.0:0", "--advertise", "node-1:7001")
	require.Contains(t, p.line(), "listening  at ")
	for line := p.line(); !strings.Contains(line, "leading  token 2"); line = p.line() {
		require.Contains(t, line, "status     neither  because ")
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// A node waits for etcd, and says so.
func TestServiceNodeWaitsForEtcd(t *testing.T) {
	port := freePort(t)
	p := start(t, "service", "node", "shop", "n1", "--ttl", "30s", "--json", "--endpoints", "127.0.0.1:"+port)
	p.event("listening")
	startEtcdProcess(t, port)
	p.becomes("leading")
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// A reader that goes away ends the node; its key goes with it.
func TestServiceNodeEndsWithItsReader(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	p, _ := serviceNode(t, "a")
	led := p.becomes("leading")
	require.NoError(t, p.stdout.Close())
	etcd.delete(led["key"].(string)) // something to tell
	p.over()
	require.Equal(t, exitFailed, p.cmd.ProcessState.ExitCode())
	require.Contains(t, p.errors(), "writing the events")
	require.Zero(t, etcd.leases())
}

func TestServiceNodesHandOver(t *testing.T) {
	startEtcdProcess(t, "0")
	a, _ := serviceNode(t, "a")
	led := a.becomes("leading")
	b, _ := serviceNode(t, "b")
	b.becomes("following")
	rows := partakes(t, "shop", 2)
	code, _, stderr := runLine(t, "transfer", "shop", "--to", rows[1]["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, rows[1]["token"], b.becomes("leading")["token"])
	require.Equal(t, "b", a.becomes("following")["leader"])
	require.NotEqual(t, led["key"], partakes(t, "shop", 2)[1]["key"], "a stands again, in a new session")

	serviceNode(t, "c", "--no-transfer")
	for end := time.Now().Add(patience); len(partakes(t, "shop", 2)) != 3; {
		require.True(t, time.Now().Before(end), "c does not stand")
	}
}

// The key of a node that was killed is waited for, but by one that is asked to take over.
func TestServiceNodeTakesOver(t *testing.T) {
	startEtcdProcess(t, "0")
	killed, _ := serviceNode(t, "a")
	led := killed.becomes("leading")
	killed.signal(syscall.SIGKILL)
	killed.over()
	serviceNode(t, "a")
	require.Equal(t, led["key"], partakes(t, "shop", 2)[0]["key"])
	next, _ := serviceNode(t, "a", "--take-over")
	require.Greater(t, next.becomes("leading")["token"], led["token"])
}
