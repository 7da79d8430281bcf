package memberproc

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
)

// Ready is the line that a member prints once it serves requests.
type Ready struct {
	Ready bool   `json:"ready"`
	Name  string `json:"name"`
	ID    string `json:"id"`
}

// Run runs one member with the given flags until in ends, the member fails or ctx
// ends. It changes the process's environment (HTTP_PROXY) and is meant to be all
// that the process does. Exit is called at the end of in, in the middle of
// whatever goes on.
func Run(ctx context.Context, args []string, in io.Reader, out, logs io.Writer) error {
	cfg, routes, err := parse(args, logs)
	if err != nil {
		return err
	}
	var fab *fabric
	if len(routes) > 0 {
		var proxy string
		if fab, proxy, err = newFabric(cfg.Name, routes); err != nil {
			return err
		}
		if err := useProxy(proxy); err != nil {
			return err
		}
		fab.starting.Store(!cfg.Existing)
	}

	lines := &lineWriter{enc: json.NewEncoder(out)}
	// Before the member starts: a parent may cut links of a member that never
	// becomes ready, and may die at any time.
	go func() {
		serve(in, lines, fab)
		os.Exit(0)
	}()

	m, err := devcluster.StartMember(cfg)
	if err != nil {
		return err
	}
	defer m.Stop()
	if fab != nil {
		fab.starting.Store(false)
	}
	if err := m.Ready(ctx); err != nil {
		return err
	}
	if err := lines.write(Ready{Ready: true, Name: cfg.Name, ID: fmt.Sprintf("%x", m.ID())}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-m.Done():
		return fmt.Errorf("member %s stopped by itself", cfg.Name)
	}
}

// command is one line from the parent, reply the answer.
type command struct {
	Seq int64  `json:"seq"`
	Cut []Link `json:"cut"`
}

type reply struct {
	Seq  int64  `json:"seq"`
	OK   bool   `json:"ok"`
	Held []Held `json:"held,omitempty"`
	Err  string `json:"error,omitempty"`
}

// serve answers commands until in ends.
func serve(in io.Reader, out *lineWriter, fab *fabric) {
	for sc := bufio.NewScanner(in); sc.Scan(); {
		var cmd command
		r := reply{OK: true}
		if err := json.Unmarshal(sc.Bytes(), &cmd); err != nil {
			r = reply{Err: err.Error()}
		}
		r.Seq = cmd.Seq
		if fab != nil && r.OK {
			fab.set(cmd.Cut)
			r.Held = fab.counts()
		}
		if out.write(r) != nil {
			return // nobody listens any more
		}
	}
}

// useProxy sends the peers' traffic, and nothing of anybody else's, through the
// fabric. It must run before the first HTTP request of the process, because
// net/http reads the environment once.
func useProxy(url string) error {
	for _, name := range []string{"NO_PROXY", "no_proxy", "REQUEST_METHOD"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	return os.Setenv("HTTP_PROXY", url)
}

// lineWriter writes JSON lines from several goroutines.
type lineWriter struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (w *lineWriter) write(v any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enc.Encode(v)
}

func parse(args []string, logs io.Writer) (devcluster.MemberConfig, []Route, error) {
	cfg := devcluster.MemberConfig{Log: logs}
	var heartbeat, election, tokenTTL int
	var routes []Route
	fs := flag.NewFlagSet("member", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints the error
	fs.StringVar(&cfg.Name, "name", "", "name of the member")
	fs.StringVar(&cfg.Dir, "data-dir", "", "data directory")
	fs.StringVar(&cfg.ClientURL, "client-url", "", "URL for clients")
	fs.StringVar(&cfg.PeerURL, "peer-url", "", "URL by which the members know this one")
	fs.StringVar(&cfg.PeerListen, "peer-listen", "", "URL at which it listens for them (default: --peer-url)")
	fs.StringVar(&cfg.Initial, "initial-cluster", "", "name=peer-url,...")
	fs.StringVar(&cfg.Token, "token", "", "token of the cluster")
	fs.BoolVar(&cfg.Existing, "existing", false, "join a running cluster")
	fs.BoolVar(&cfg.Replaceable, "replaceable", false, "let the cluster change its members at any time")
	fs.IntVar(&heartbeat, "heartbeat", 0, "heartbeat interval in ms")
	fs.IntVar(&election, "election", 0, "election timeout in ms")
	fs.BoolVar(&cfg.NoFsync, "unsafe-no-fsync", false, "do not wait for the disk")
	fs.Int64Var(&cfg.Quota, "quota", 0, "bytes at which writes are refused")
	fs.UintVar(&cfg.MaxTxnOps, "max-txn-ops", 0, "operations in a transaction")
	fs.IntVar(&tokenTTL, "token-ttl", 0, "life of an authentication token in s")
	fs.BoolVar(&cfg.Debug, "debug", false, "log at debug level")
	fs.Func("route", "name,host:port,real-host:port of a peer behind the fabric; repeat for each peer", func(s string) error {
		p := strings.Split(s, ",")
		if len(p) != 3 {
			return fmt.Errorf("want name,host:port,real-host:port")
		}
		routes = append(routes, Route{Name: p[0], Host: p[1], Real: p[2]})
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return cfg, nil, err
	}
	cfg.Heartbeat = time.Duration(heartbeat) * time.Millisecond
	cfg.TokenTTL = time.Duration(tokenTTL) * time.Second
	cfg.Election = time.Duration(election) * time.Millisecond
	if cfg.Name == "" || cfg.Dir == "" || cfg.ClientURL == "" || cfg.PeerURL == "" || fs.NArg() > 0 {
		return cfg, nil, fmt.Errorf("a member needs --name, --data-dir, --client-url and --peer-url, and no arguments")
	}
	return cfg, routes, nil
}
