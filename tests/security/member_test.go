package security

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// memberEnv makes the test binary an etcd member; its value is a spec.
const memberEnv = "ELDEST_SECURITY_MEMBER"

// spec is the configuration of a member.
type spec struct {
	Dir           string
	CA, Cert, Key string
	// Tokens is etcd's --auth-token, TTL its --auth-token-ttl in seconds.
	Tokens string
	TTL    uint
}

// beMember runs one etcd member until its parent ends.
func beMember(text string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "member:", err)
		os.Exit(1)
	}
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fail(err)
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "m0", s.Dir
	client, peer := url.URL{Scheme: "https", Host: "127.0.0.1:0"}, url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 10, 100 // for leases of one second
	cfg.UnsafeNoFsync, cfg.EnableGRPCGateway = true, false
	cfg.LogLevel, cfg.LogOutputs = "error", []string{"stderr"}
	cfg.ClientTLSInfo = transport.TLSInfo{CertFile: s.Cert, KeyFile: s.Key, TrustedCAFile: s.CA, ClientCertAuth: true}
	cfg.AuthToken, cfg.AuthTokenTTL = s.Tokens, s.TTL
	cfg.BcryptCost = 4 // the lowest: checking a password must not hold up a busy machine
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		fail(err)
	}
	<-e.Server.ReadyNotify()
	fmt.Printf("ready %s\n", e.Clients[0].Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startMember starts a member, which is killed with the test.
func startMember(t *testing.T, s spec) (endpoint string) {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), memberEnv+"="+string(text))
	var log strings.Builder
	cmd.Stderr = &log
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		<-done
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of etcd:\n%s", log.String()) // complete, since the process was waited for
		}
	})
	ready := make(chan string, 1)
	go func() {
		defer close(done)
		defer close(ready)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if address, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- address
			}
		}
	}()
	select {
	case address, ok := <-ready:
		require.True(t, ok, "the member has ended")
		return "https://" + address
	case <-time.After(etcdtest.Patience):
		require.FailNow(t, "the member is not ready")
		return ""
	}
}
