package memberproc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
)

// started is the line that a member prints first if it runs another etcd as a process of its own.
type started struct {
	Child int `json:"child"`
}

// server is the etcd of a member: the embedded one or another.
type server interface {
	Ready(context.Context) error
	ID() string
	Done() <-chan struct{}
	Stop()
}

// ready is the line that a member prints once it serves requests.
type ready struct {
	Ready bool   `json:"ready"`
	Name  string `json:"name"`
	ID    string `json:"id"`
}

// segmentSize is the size in bytes of the files of the write-ahead log. etcd's own is 64 MB, and a new
// member allocates two such files: that is most of what its start costs if they are in memory.
const segmentSize = 4 << 20

// Run runs one member with the given arguments until in ends, the member fails or ctx ends. It
// changes the process's environment (HTTP_PROXY) and the segment size of all write-ahead logs, and is
// meant to be the only thing that the process does. At the end of in it calls os.Exit, whatever else is going on.
func Run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	cfg, own, err := configure(args)
	if err != nil {
		return err
	}
	wal.SegmentSizeBytes = segmentSize
	var fab *fabric
	if len(own.Routes) > 0 {
		var proxy string
		if fab, proxy, err = newFabric(cfg.Name, own.Routes); err != nil {
			return err
		}
		if err := useProxy(proxy); err != nil {
			return err
		}
		fab.set(own.Cut)
		fab.starting.Store(cfg.ClusterState == embed.ClusterStateFlagNew)
	}

	lines := &lineWriter{enc: json.NewEncoder(out)}
	// This starts before the member: a parent may cut links of a member that never becomes ready, and
	// may die at any time.
	go func() {
		serve(in, lines, fab)
		os.Exit(0)
	}()

	m, err := startServer(own.Etcd, args[0], cfg, lines)
	if err != nil {
		return err
	}
	defer m.Stop()
	if fab != nil && own.Etcd == "" {
		fab.starting.Store(false) // the embedded server listens
	}
	if err := m.Ready(ctx); err != nil {
		return err
	}
	if fab != nil {
		fab.starting.Store(false)
	}
	if err := lines.write(ready{Ready: true, Name: cfg.Name, ID: m.ID()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-m.Done():
		return fmt.Errorf("member %s stopped by itself", cfg.Name)
	}
}

// startServer starts the etcd at path or, for "", the embedded one.
func startServer(path, file string, cfg *embed.Config, lines *lineWriter) (server, error) {
	if path == "" {
		return devcluster.StartMember(cfg)
	}
	c, err := startChild(path, file, cfg)
	if err != nil {
		return nil, err
	}
	if err := lines.write(started{Child: c.cmd.Process.Pid}); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// extra is what the configuration file has beside etcd's own fields, which etcd ignores.
type extra struct {
	Routes []Route `json:"routes"`
	Cut    []Link  `json:"cut"` // until the first command
	Etcd   string  `json:"etcd"`
}

// configure reads the file that the argument names.
func configure(args []string) (cfg *embed.Config, own extra, err error) {
	if len(args) != 1 {
		return nil, own, errors.New("a member needs one argument, a file with its configuration; see internal/memberproc")
	}
	data, err := os.ReadFile(args[0])
	if err == nil {
		err = json.Unmarshal(data, &own)
	}
	if err == nil {
		cfg, err = embed.ConfigFromFile(args[0])
	}
	return cfg, own, err
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
			return // the parent does not read any more
		}
	}
}

// useProxy sends the traffic to peers, and no other, through the fabric. It must run before the first
// HTTP request of the process, because net/http reads the environment once.
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
