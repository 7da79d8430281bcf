package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// labLimit bounds the run of one command.
const labLimit = 12 * time.Minute

// lab is a running "eldest lab", and a client of its server besides the browser.
type lab struct {
	*clitest.Process
	t       *testing.T
	tmp     string
	address string // what it prints: with the token
	base    string // without
	client  *http.Client
	info    feed.Info
	etcd    *clientv3.Client
	browser *chromium
	feedtest.Feed
}

// in returns the lab for a subtest, which fails instead of the test that has started it.
func (l *lab) in(t *testing.T) *lab {
	own := *l
	own.t, own.Feed.T = t, t
	return &own
}

// visit opens the page in a new window.
func (l *lab) visit(before ...chromedp.Action[chromedp.Void]) ui {
	l.t.Helper()
	return use(visit(l.t, l.browser, l.address, before...))
}

// addressOf finds the address in the first line of the command's output.
var addressOf = regexp.MustCompile(`(http://[^/"\s]+)/\?token=[0-9a-f]+`)

// open starts "eldest lab" and blocks until it serves. It is interrupted when the test ends, and must
// leave neither a process nor a file.
func open(t *testing.T, browser *chromium, args ...string) *lab {
	t.Helper()
	path, err := command()
	require.NoError(t, err)
	l := &lab{t: t, tmp: t.TempDir(), browser: browser}
	ctx, cancel := context.WithTimeout(context.Background(), labLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, append([]string{"lab", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+l.tmp)
	l.Process = clitest.Start(t, cmd)
	t.Cleanup(l.interrupt)
	found := addressOf.FindStringSubmatch(l.Line())
	require.NotNil(t, found, "it printed no address: %s", l.Errors())
	l.address, l.base = found[0], found[1]
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	l.client = &http.Client{Jar: jar, Transport: transport}
	l.get(strings.TrimPrefix(l.address, l.base))
	require.NoError(t, json.Unmarshal(l.get("/info"), &l.info))
	l.etcd, err = clientv3.New(clientv3.Config{Endpoints: l.info.Endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.etcd.Close() })
	l.Feed = listen(t, l.client, l.base)
	return l
}

// interrupt ends the command as Ctrl-C does.
func (l *lab) interrupt() {
	select {
	case <-l.Done: // the test has failed at its start, and says why
		return
	default:
	}
	pids := clitest.Children(l.Cmd.Process.Pid)
	l.Signal(syscall.SIGINT)
	l.Over()
	require.Zero(l.t, l.ProcessState.ExitCode(), "a signal is its normal end: %s", l.Errors())
	clitest.RequireGone(l.t, pids)
	left, err := os.ReadDir(l.tmp)
	require.NoError(l.t, err)
	require.Empty(l.t, left)
}

// get returns what the server sends.
func (l *lab) get(path string) []byte {
	l.t.Helper()
	req, err := http.NewRequestWithContext(etcdtest.Context(l.t), http.MethodGet, l.base+path, nil)
	require.NoError(l.t, err)
	return l.send(req)
}

// post sends an object as JSON. It must be accepted.
func (l *lab) post(path string, object any) {
	l.t.Helper()
	body, err := json.Marshal(object)
	require.NoError(l.t, err)
	req, err := http.NewRequestWithContext(etcdtest.Context(l.t), http.MethodPost, l.base+path, bytes.NewReader(body))
	require.NoError(l.t, err)
	req.Header.Set("Content-Type", "application/json")
	l.send(req)
}

func (l *lab) send(req *http.Request) []byte {
	l.t.Helper()
	resp, err := l.client.Do(req)
	require.NoError(l.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	require.Equal(l.t, http.StatusOK, resp.StatusCode, "%s %s: %s", req.Method, req.URL, body)
	return body
}

// begin begins anew, adds a participant of each of these kinds, and blocks until they are queued, p1
// first, and p1 leads.
func (l *lab) begin(kinds ...feed.Kind) {
	l.t.Helper()
	begun := l.Seq()
	add := func(i int) feed.Action { return feed.Action{Do: feed.Add, Kind: kinds[i]} }
	l.post("/play", feed.Scenario{Steps: []feed.Step{{Action: add(0)}}}) // one without steps is refused
	l.Acted(l.Acted(begun, feed.Play).Seq, feed.Add)
	var want []string
	for i := range kinds {
		want = append(want, participantName(i))
		if i > 0 {
			l.post("/do", add(i))
		}
		l.eventually(want[i]+" is queued", func() bool { return slices.Equal(l.order(), want) })
	}
	l.Await(begun, "p1 leads", feedtest.Reported(want[0], "won"))
}

// place is a candidate's key in etcd.
type place struct {
	Key, Value    string
	Create, Lease int64
}

// places reads the queue of the election from etcd, the oldest candidate first.
func (l *lab) places(election string) (all []place) {
	l.t.Helper()
	begin, end := keys.Range(election)
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	resp, err := l.etcd.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	require.NoError(l.t, err)
	for _, kv := range resp.Kvs {
		all = append(all, place{string(kv.Key), string(kv.Value), kv.CreateRevision, kv.Lease})
	}
	return all
}

// unknown is the name of the owner of a key, before the feed has it.
const unknown = "?"

// owners returns whose the keys of the newest queue are.
func (l *lab) owners() map[string]string {
	owners := map[string]string{}
	for _, p := range l.Places("") {
		owners[p.Key] = p.Who
	}
	return owners
}

// order returns the names of the participants in etcd's queue, the oldest first: etcd has the keys,
// and the feed says whose they are. A key that the feed does not know yet has the name unknown.
func (l *lab) order() (names []string) {
	l.t.Helper()
	owners := l.owners()
	for _, p := range l.places(l.info.Election) {
		who, ok := owners[p.Key]
		if !ok {
			who = unknown
		}
		names = append(names, who)
	}
	return names
}

// placeOf returns the key of a participant in etcd, which must have one.
func (l *lab) placeOf(who string) place {
	l.t.Helper()
	owners := l.owners()
	for _, p := range l.places(l.info.Election) {
		if owners[p.Key] == who {
			return p
		}
	}
	require.Fail(l.t, who+" has no key in etcd")
	return place{}
}

// gone reports whether a key with this create revision does not exist in etcd.
func (l *lab) gone(p place) bool {
	l.t.Helper()
	for _, now := range l.places(l.info.Election) {
		if now.Key == p.Key && now.Create == p.Create {
			return false
		}
	}
	return true
}

// leader returns who has the oldest key in etcd; "" if there is none.
func (l *lab) leader() string {
	l.t.Helper()
	if order := l.order(); len(order) > 0 {
		return order[0]
	}
	return ""
}

// becomes waits until the newest state of a participant is as it must be.
func (l *lab) becomes(who, what string, is func(feed.ParticipantState) bool) {
	l.t.Helper()
	l.eventually(who+" "+what, func() bool { return is(l.Participant(who)) })
}

// lives waits until the process of a participant is in a state.
func (l *lab) lives(who string, life feed.Life) {
	l.t.Helper()
	l.becomes(who, "is "+string(life), func(p feed.ParticipantState) bool { return p.Life == life })
}

func (l *lab) eventually(what string, holds func() bool) {
	l.t.Helper()
	etcdtest.Eventually(l.t, holds, "%s; the queue is %v", what, lazy(func() string { return strings.Join(l.order(), " ") }))
}
