package clusterview

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/keys"
)

// Config describes a View.
type Config struct {
	// Client is the client of the cluster, within the namespace of Conn. The caller closes it after
	// the View.
	Client *clientv3.Client
	// Conn are the flags from which Client was made.
	Conn *connect.Flags
	// Election is the one election that is shown; "" means all elections in the namespace.
	Election string
	// Write permits transfers and evictions.
	Write bool
}

// View shows the elections of a cluster. New makes it, Close ends it. Its methods may be called
// concurrently.
type View struct {
	cfg Config
	log *feed.Log
	// endpoints are those of the flags, without a user and password; plain replaces them in texts.
	endpoints []string
	plain     *strings.Replacer

	stop    context.CancelFunc
	running sync.WaitGroup

	// mu also orders the events of states: they are added while it is held.
	mu        sync.Mutex
	elections map[string]*election // by name
	// listed is the newest list of elections in the log; nil before they were read.
	listed []feed.ElectionState
	left   leases
	done   []feed.Step
	doneMS float64 // when the last of done was done

	reporting sync.Mutex
	reported  map[string]time.Time // when each problem was added to the log
}

// New begins to read the cluster and returns at once: whether etcd answers is shown on the page. The
// error wraps eldest.ErrInvalid if the name of the election is invalid.
func New(cfg Config) (*View, error) {
	if cfg.Client == nil || cfg.Conn == nil {
		return nil, errors.New("clusterview: Config.Client or Config.Conn is nil")
	}
	if cfg.Election != "" {
		if err := keys.Check(cfg.Election); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	v := &View{cfg: cfg, log: feed.NewLog(), stop: stop, elections: map[string]*election{}, reported: map[string]time.Time{}}
	var replacements []string
	for _, endpoint := range cfg.Conn.Endpoints {
		v.endpoints = append(v.endpoints, withoutUser(endpoint))
		replacements = append(replacements, endpoint, withoutUser(endpoint))
	}
	v.plain = strings.NewReplacer(replacements...)
	for _, work := range []func(context.Context){v.follow, v.catchUp, v.pollLeases, v.pollMembers} {
		v.running.Go(func() { work(ctx) })
	}
	return v, nil
}

// withoutUser removes the user and password that a URL may have.
func withoutUser(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.User == nil {
		return endpoint
	}
	u.User = nil
	return u.String()
}

// Close ends everything, and waits for it. Actions end with their own contexts.
func (v *View) Close() error {
	v.stop()
	v.running.Wait()
	return nil
}

// Info describes the cluster.
func (v *View) Info() feed.Info {
	return feed.Info{Mode: "cluster", Write: v.cfg.Write, Election: v.cfg.Election, Endpoints: v.endpoints, Version: cli.Version()}
}

// Log returns the events.
func (v *View) Log() *feed.Log { return v.log }

// Play is refused.
func (v *View) Play(context.Context, feed.Scenario) error {
	return feed.Refused("a scenario cannot be played on an existing cluster")
}

// idle is the time between two checks whether a page is open.
const idle = 200 * time.Millisecond

// failed reports the failure of a request, unless it is the end of ctx.
func (v *View) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		v.report(v.explained(err).Error())
	}
}

// repeatReport is the time between two reports of the same problem.
const repeatReport = 30 * time.Second

// report shows a problem on the page, if it was not shown a moment ago.
func (v *View) report(text string) {
	v.reporting.Lock()
	defer v.reporting.Unlock()
	maps.DeleteFunc(v.reported, func(_ string, at time.Time) bool { return time.Since(at) >= repeatReport })
	if _, recent := v.reported[text]; !recent {
		v.reported[text] = time.Now()
		v.log.Add(feed.Event{Type: feed.Problem, Error: text})
	}
}
