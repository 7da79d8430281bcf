package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/httpstatus"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// runLine runs a command line to its end.
func runLine(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Line(t, newRootCmd(), args...)
}

func requireUsage(t testing.TB, reason string, args ...string) {
	t.Helper()
	code, stdout, stderr := runLine(t, args...)
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, reason)
	require.Contains(t, stderr, "--help")
	require.NotContains(t, stderr, "secret")
}

// Arguments that are too long for a script; all other bad usage is in usage.txtar.
func TestLongWords(t *testing.T) {
	long := strings.Repeat("x", 1<<20+1)
	requireUsage(t, "VALUE has 1048577 bytes", "campaign", "svc", long)
	requireUsage(t, "--value has 1048577 bytes", "run", "svc", "--value", long, "--", "true")
	requireUsage(t, "", "service", "node", "shop", long)
}

// helpSays is what the help of some commands must contain, beside the connection flags.
var helpSays = map[string][]string{
	"campaign": nil,
	"leader":   {"node NODE at ADDRESS, instance INSTANCE"},
	"list":     {"node NODE at ADDRESS, instance INSTANCE"},
	"observe":  {"node NODE at ADDRESS, instance INSTANCE"},
	"evict":    {"node NODE at ADDRESS, instance INSTANCE"},
	"transfer": {"Not guaranteed"},
	"run": {
		"ELDEST_ELECTION", "ELDEST_CANDIDATE_KEY", "ELDEST_TOKEN", "ELDEST_DEADLINE", "ELDEST_CAUSE", "ELDEST_EXIT_CODE", "ELDEST_PID",
		"--grace", "--restart", "--exit-code", "--on-win", "--on-loss", "--hook-timeout", "--health", "--health-every", "Not guaranteed",
	},
}

// Each command is in a group, and its help says how it is used, with an example, what it prints with
// --json, and how it ends.
func TestHelp(t *testing.T) {
	groups := map[string]string{}
	for _, cmd := range newRootCmd().Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		groups[cmd.GroupID] += cmd.Name() + " "
		for _, path := range append([]string{cmd.Name()}, map[string][]string{"service": {"service node"}}[cmd.Name()]...) {
			code, stdout, stderr := runLine(t, append(strings.Fields(path), "--help")...)
			require.Equal(t, cli.ExitOK, code)
			require.Empty(t, stderr)
			for _, part := range []string{"Usage:\n", "Exit codes: 0 ", "2 bad usage", "Examples:\n  eldest ", "--json"} {
				require.Contains(t, stdout, part, path)
			}
			require.NotRegexp(t, `(?m) $`, stdout, path)
			if path == "run" || path == "campaign" { // they fit a screen
				require.LessOrEqual(t, strings.Count(stdout, "\n"), 60, path)
				require.NotRegexp(t, `(?m)^.{101}`, stdout, path)
			}
			require.NotContains(t, stdout, "run-keeper", "it is not for users")
			words := strings.Join(strings.Fields(stdout), " ") // a line may end anywhere
			if parts, ok := helpSays[path]; ok {
				for _, part := range append(parts, "--endpoints", "ELDEST_ENDPOINTS", "ETCDCTL_ENDPOINTS") {
					require.Contains(t, words, part, path)
				}
			}
		}
	}
	require.Equal(t, map[string]string{
		"use": "campaign leader observe run ", "operate": "etcd evict list transfer ", "learn": "demo lab service trace ", "test": "bench chaos ", "about": "version ",
	}, groups)
}

// --ttl 0s means the default of the command, as a TTL of 0 does in the library, in each command with
// the flag. Bench has a list of TTLs, of which none is a default.
//
// Fails if a command refuses 0s, or takes it for a TTL.
func TestTTLOfZeroIsTheDefault(t *testing.T) {
	var with []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if flag := cmd.Flags().Lookup("ttl"); flag != nil && flag.Value.Type() != "durationSlice" {
			with = append(with, cmd.CommandPath())
			byDefault := flag.Value.String()
			require.NoError(t, cmd.Flags().Set("ttl", "17s"))
			require.Equal(t, "17s", flag.Value.String(), cmd.CommandPath())
			require.NoError(t, cmd.Flags().Set("ttl", "0s"))
			require.Equal(t, byDefault, flag.Value.String(), cmd.CommandPath())
			require.Error(t, cmd.Flags().Set("ttl", "10"), "without a unit")
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCmd())
	require.ElementsMatch(t, []string{
		"eldest campaign", "eldest run", "eldest service", "eldest service node", "eldest demo", "eldest lab", "eldest chaos", "eldest trace",
	}, with)
}

func TestExitCodes(t *testing.T) {
	failure := errors.New("it failed")
	for name, c := range map[string]struct {
		err          error
		code         int
		stderr, json string
	}{
		"done":             {nil, cli.ExitOK, "", ""},
		"failed":           {failure, cli.ExitFailed, "eldest fake: it failed\n", `{"error":"it failed","exit_code":1}` + "\n"},
		"coded":            {cli.Exit(cli.ExitLost, failure), cli.ExitLost, "eldest fake: it failed\n", `{"error":"it failed","exit_code":3}` + "\n"},
		"coded and silent": {cli.Exit(cli.ExitNobody, nil), cli.ExitNobody, "", ""},
		"wrapped":          {fmt.Errorf("because %w", cli.Exit(cli.ExitLost, failure)), cli.ExitLost, "eldest fake: because it failed\n", `{"error":"because it failed","exit_code":3}` + "\n"},
		"advised": {
			fmt.Errorf("because %w", cli.Advise(failure, "try <again>")), cli.ExitFailed, "eldest fake: because it failed; try <again>\n",
			`{"error":"because it failed","exit_code":1,"advice":"try <again>"}` + "\n",
		},
		"usage": {
			cli.Usagef("%d is too many", 7), cli.ExitUsage, "eldest fake: 7 is too many\nRun 'eldest fake --help' for usage.\n",
			`{"error":"7 is too many","exit_code":2,"advice":"Run 'eldest fake --help' for usage."}` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := cli.NewRoot()
			root.AddCommand(&cobra.Command{Use: "fake", RunE: func(*cobra.Command, []string) error { return c.err }})
			code, _, stderr := clitest.Line(t, root, "fake")
			require.Equal(t, c.code, code)
			require.Equal(t, c.stderr, stderr)
			code, stdout, stderr := clitest.Line(t, root, "fake", "--json")
			require.Equal(t, c.code, code)
			require.Equal(t, c.json, stderr)
			require.Empty(t, stdout)
		})
	}
}

// With --json the failure of each command is one object on stderr, also if the parsing of the command
// line fails before the flag.
func TestFailuresInJSON(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Hidden {
			return
		}
		words := strings.Fields(cmd.CommandPath())[1:]
		for _, flags := range [][]string{{"--json", "--no-such-flag"}, {"--no-such-flag", "--json"}} {
			code, stdout, stderr := runLine(t, append(slices.Clone(words), flags...)...)
			require.Equal(t, cli.ExitUsage, code, words)
			require.Empty(t, stdout)
			o := parse[object](t, stderr)
			require.Contains(t, o["error"], "--no-such-flag")
			require.Contains(t, o["advice"], cmd.CommandPath()+" --help")
			require.EqualValues(t, cli.ExitUsage, o["exit_code"])
		}
	}
	visit(newRootCmd())
	_, _, stderr := runLine(t, "run", "svc", "--no-such-flag", "--", "program", "--json")
	require.True(t, strings.HasPrefix(stderr, "eldest run: "), "--json is the program's: %s", stderr)
}

// The queue changes between the question and the answer.
func TestEvictRemovesOnlyWhatWasShown(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	ctx := bounded(t)
	put := func() {
		_, err := etcd.client.Put(ctx, "svc/1f", "")
		require.NoError(t, err)
	}
	put()
	plan, err := operate.PlanRemoval(ctx, etcd.client, "svc", "", "")
	require.NoError(t, err)

	etcd.delete("svc/1f")
	code, err := cli.ExitCode(plan.CarryOut(ctx, etcd.client), true)
	require.Equal(t, cli.ExitNobody, code)
	require.ErrorContains(t, err, "has left the queue meanwhile")
	put()
	code, err = cli.ExitCode(plan.CarryOut(ctx, etcd.client), true)
	require.Equal(t, cli.ExitFailed, code)
	require.ErrorContains(t, err, "was registered again meanwhile")
	require.Equal(t, []string{"svc/1f"}, etcd.keys())
}

// The removal was sent, but its reply did not arrive: the user is not told that nothing was done.
func TestEvictAdmitsThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	_, err := etcd.client.Put(bounded(t), "svc/1f", "")
	require.NoError(t, err)
	host := etcd.Host(t)
	host.SwallowNextReply(etcdtest.Containing("svc/1f"))
	_, _, stderr := etcd.line("evict", "svc", "--yes", "--endpoints", host.Endpoints()[0])
	require.Contains(t, stderr, "may have been removed")
	require.Empty(t, etcd.keys())
}

// The same if a proxy in front of etcd resets the stream or cancels it: etcd has not refused.
//
// Fails if only a missing answer leaves the outcome unknown.
func TestEvictDoesNotTakeAResetForARefusal(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	for _, reset := range []codes.Code{codes.Internal, codes.Canceled, codes.Unknown} {
		_, err := etcd.client.Put(bounded(t), "svc/1f", "")
		require.NoError(t, err)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		proxy := grpc.NewServer()
		pb.RegisterKVServer(proxy, resetting{kv: pb.NewKVClient(etcd.client.ActiveConnection()), code: reset})
		var serving sync.WaitGroup
		serving.Go(func() { _ = proxy.Serve(listener) })
		_, _, stderr := etcd.line("evict", "svc", "--yes", "--endpoints", "http://"+listener.Addr().String())
		proxy.Stop()
		serving.Wait()
		require.Contains(t, stderr, "may have been removed", "%v", reset)
		require.Empty(t, etcd.keys())
	}
}

// resetting passes requests on to etcd, and does not pass on the answers to transactions.
type resetting struct {
	pb.UnimplementedKVServer
	kv   pb.KVClient
	code codes.Code
}

func (r resetting) Range(ctx context.Context, q *pb.RangeRequest) (*pb.RangeResponse, error) {
	return r.kv.Range(ctx, q)
}

func (r resetting) Txn(ctx context.Context, q *pb.TxnRequest) (*pb.TxnResponse, error) {
	if resp, err := r.kv.Txn(ctx, q); err != nil || len(q.Compare) == 0 {
		return resp, err
	}
	return nil, status.Error(r.code, "stream terminated by RST_STREAM")
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]error{
		"y\n": nil, "YES \n": nil, "n\n": cli.ErrDeclined, "\n": cli.ErrDeclined, "": cli.ErrDeclined, "yesterday\n": cli.ErrDeclined,
	} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetIn(strings.NewReader(answer))
		var asked strings.Builder
		cmd.SetErr(&asked)
		require.Equal(t, want, cli.Confirm(cmd), "%q", answer)
		require.Equal(t, "Go on? [y/N] ", asked.String())
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                         "plain",
		"with space, Grüße, 世界":         "with space, Grüße, 世界",
		"":                              "",
		" padded":                       `" padded"`,
		`"quoted"`:                      `"\"quoted\""`,
		"\x1b[2J":                       `"\x1b[2J"`,
		"tab\tline\n":                   `"tab\tline\n"`,
		"\xff":                          `"\xff"`,
		"left\u202eright":               `"left\u202eright"`,
		"zero\u200bwidth":               `"zero\u200bwidth"`,
		strings.Repeat("é", 1000):       strings.Repeat("é", cli.MaxShown/2) + "...",
		"x" + strings.Repeat("é", 1000): "x" + strings.Repeat("é", cli.MaxShown/2-1) + "...",
	} {
		require.Equal(t, want, cli.Printable(text))
	}
}

func TestObserveEvents(t *testing.T) {
	led := func(token eldest.Token, mod int64) eldest.State {
		return eldest.State{Kind: eldest.Led, Leader: eldest.Leader{Token: token, ModRevision: mod}, Revision: mod}
	}
	nobody, unknown := eldest.State{Kind: eldest.Nobody}, eldest.State{}
	events := observeEvents{}
	for i, step := range []struct {
		state eldest.State
		want  string
	}{
		{unknown, "unknown"}, {unknown, ""}, {nobody, "nobody"}, {led(1, 1), "leader"}, {led(1, 2), "value"},
		{led(1, 2), ""}, {led(3, 3), "leader"}, {unknown, "unknown"}, {led(3, 3), "leader"}, {nobody, "nobody"}, {nobody, ""},
	} {
		event, told := events.next(step.state)
		require.Equal(t, step.want != "", told, "step %d", i)
		if told {
			require.Equal(t, step.want, event.Event, "step %d", i)
		}
	}
}

// Every command that waits for a registration reports that it is not answered, although the lease
// exists and its renewals go on.
//
// Fails when only the grant of the lease is reported.
func TestRegistrationThatIsNotAnsweredIsReported(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	host := etcd.Host(t)
	for election, line := range map[string]string{
		"first": "campaign first", "second": "run second -- sleep 1000", "third": "service node third n1",
	} {
		host.SwallowNextReply(etcdtest.Containing("/eldest/newest/" + election))
		before, after, _ := strings.Cut(line, " -- ")
		args := append(strings.Fields(before), "--ttl", "30s", "--endpoints", host.Endpoints()[0])
		if after != "" {
			args = append(append(args, "--"), strings.Fields(after)...)
		}
		p := etcd.start(args...)
		p.Says("waiting for etcd at " + host.Endpoints()[0])
		p.Says("etcd answers")
		p.Signal(syscall.SIGTERM)
		p.Ends(cli.ExitOK)
	}
	require.Zero(t, etcd.leases())
}

// The library makes a client whose connections are lost reconnect at once. That requires the client
// itself: otherwise gRPC's pauses are longer than most leases.
//
// Fails when the session gets a part of the client, or a wrapper.
func TestCampaignReconnects(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	etcd.spoiled = true
	require.NoError(t, etcd.Member(0).Kill())
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{etcd.endpoint}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: time.Hour, Multiplier: 1, MaxDelay: time.Hour}, MinConnectTimeout: time.Second,
		})},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	var said clitest.Sheet
	f := &candidateFlags{conn: &connect.Flags{Endpoints: []string{etcd.endpoint}}, noTransfer: true}
	wait := &connect.Notice{Conn: f.conn, Say: func(line string) { _, _ = io.WriteString(&said, line) }}
	events := &eventLog{election: "svc", wait: wait, Lines: cli.WriteLines(io.Discard, func(string) {}, func(error) {})}
	defer events.Close(patience)

	opened := make(chan *candidacy, 1)
	go func() {
		c, err := f.open(bounded(t), client, "", lease.Options{TTL: 30 * time.Second}, events, httpstatus.New("svc", time.Minute))
		assert.NoError(t, err)
		opened <- c
	}()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "waiting for etcd at "+etcd.endpoint) }, patience, time.Millisecond)
	require.NoError(t, etcd.Member(0).Restart(bounded(t)))
	c := <-opened
	require.NotNil(t, c)
	require.NoError(t, c.close(bounded(t), patience, nil))
	require.Contains(t, said.String(), "etcd answers")
}

// startTLS serves an etcd behind TLS, only to clients with a certificate of a.
func startTLS(t *testing.T, a *etcdtest.Authority, etcd *etcd) (endpoint string) {
	cfg := a.Server(a.Issue("127.0.0.1"), tls.RequireAndVerifyClientCert)
	cfg.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = in.Close() }()
				out, err := net.Dial("tcp", strings.TrimPrefix(etcd.endpoint, "http://"))
				if err != nil {
					return
				}
				serving.Go(func() {
					defer func() { _ = out.Close() }()
					_, _ = io.Copy(out, in)
				})
				_, _ = io.Copy(in, out)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return "https://" + l.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, strangers := etcdtest.NewAuthority(t), etcdtest.NewAuthority(t)
	cert, key := a.Files(a.Issue("client"))
	_, another := a.Files(a.Issue("client"))
	endpoint := startTLS(t, a, etcd)
	etcd.campaign("leader", "svc", "me")
	for name, c := range map[string]struct {
		code   int
		stderr string
		args   []string
	}{
		"right":         {cli.ExitOK, "", []string{"--cacert", a.File, "--cert", cert, "--key", key}},
		"unverified":    {cli.ExitOK, "", []string{"--insecure-skip-tls-verify", "--cert", cert, "--key", key}},
		"unknown":       {cli.ExitFailed, "certificate", []string{"--cacert", strangers.File, "--cert", cert, "--key", key}},
		"unidentified":  {cli.ExitFailed, "no answer", []string{"--cacert", a.File}},
		"without a CA":  {cli.ExitFailed, "certificate", nil},
		"not a keypair": {cli.ExitUsage, "--cert", []string{"--cert", cert, "--key", another}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcd.of(t)
			limit := patience.String() // for an answer; a request that is refused is repeated until then
			if c.code != cli.ExitOK {
				limit = "5s"
			}
			args := append([]string{"leader", "svc", "--endpoints", endpoint, "--command-timeout", limit, "--dial-timeout", limit}, c.args...)
			code, stdout, stderr := etcd.line(args...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.stderr)
			require.Equal(t, c.code == cli.ExitOK, strings.Contains(stdout, "me"), stdout)
		})
	}
}

// A candidate that has left between the two reads of eldest list is in the first one only: whether it
// took part in transfers is not known.
func TestListOfACandidateThatHasLeft(t *testing.T) {
	queue := []observe.Entry{
		{Candidate: eldest.Candidate{Key: "svc/a", Lease: 10, Token: 5}, TTL: time.Second},
		{Candidate: eldest.Candidate{Key: "svc/b", Lease: 11, Token: 6}, TTL: time.Second},
	}
	for _, test := range []struct{ asJSON, left, stays string }{
		{"false", `svc/a +a +5 +1s +\?`, `svc/b +b +6 +1s +no`},
		{"true", `"token":5[^}]*"ttl_seconds":1}`, `"token":6[^}]*"ttl_seconds":1,"transfer":false}`},
	} {
		var out strings.Builder
		cmd := newRootCmd()
		cmd.SetOut(&out)
		require.NoError(t, cmd.ParseFlags([]string{"--json=" + test.asJSON}))
		require.NoError(t, showQueue(cmd, queue, map[eldest.Token]bool{6: false}))
		require.Regexp(t, test.left, out.String())
		require.Regexp(t, test.stays, out.String())
	}
}

// Keys that were put by hand in one transaction have one token. When the first one is deleted another
// candidate leads, and not the same one with another value.
func TestObserveOfKeysWithOneToken(t *testing.T) {
	events := observeEvents{}
	state := func(key string) eldest.State {
		return eldest.State{Kind: eldest.Led, Leader: eldest.Candidate{Key: key, Token: 5, ModRevision: 5}}
	}
	_, told := events.next(state("svc/a"))
	require.True(t, told)
	next, told := events.next(state("svc/b"))
	require.True(t, told)
	require.Equal(t, "leader", next.Event)
	require.Equal(t, "svc/b", next.Key)
}
