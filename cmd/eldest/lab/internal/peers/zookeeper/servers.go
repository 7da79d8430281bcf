package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// size is the number of servers.
const size = 3

// jar is the library of Debian's package. Its manifest names those that it needs.
const jar = "/usr/share/java/zookeeper.jar"

// logger writes log lines to stderr. Without it the servers log nothing.
const logger = "/usr/share/java/slf4j-simple.jar"

// ensemble is a running ensemble. The name of a process is the address that it has for clients.
type ensemble struct {
	addresses []string

	mu        sync.Mutex
	last, sum int64 // transactions: see count
}

// start starts an ensemble.
func start(ctx context.Context, cfg peer.ServerConfig) (*peer.Servers, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("a Java runtime (Debian: default-jre-headless) is %w: %w", peer.ErrMissing, err)
	}
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("the package zookeeper of Debian is %w: %w", peer.ErrMissing, err)
	}
	ports, err := cfg.Fleet.Ports(3 * size)
	if err != nil {
		return nil, err
	}
	clients, quorum, election := ports[:size], ports[size:2*size], ports[2*size:]
	var members strings.Builder
	for i := range size {
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, quorum[i], election[i])
	}
	e := &ensemble{}
	for i, port := range clients {
		dir := filepath.Join(cfg.Dir, "server-"+strconv.Itoa(i+1))
		data, file := filepath.Join(dir, "data"), filepath.Join(dir, "zoo.cfg")
		settings := settingsFile(timings[cfg.Setting], data, port) + members.String()
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if err := errors.Join(
			os.MkdirAll(data, 0o700),
			os.WriteFile(file, []byte(settings), 0o600),
			os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o600),
			cfg.Fleet.Start(address, peer.Program{Path: java, Args: arguments(file), Dir: dir}),
		); err != nil {
			return nil, err
		}
		e.addresses = append(e.addresses, address)
	}
	// All must serve, not only a majority: otherwise the first measurements would compete with the start of the last one.
	var its status
	for _, address := range e.addresses {
		if err := cfg.Fleet.Await(ctx, address, func(ctx context.Context) (err error) {
			its, err = ask(ctx, address)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return &peer.Servers{
		Version: "ZooKeeper " + its.version, Nodes: size, Endpoints: e.addresses, Writes: e.writes,
		KillLeader: func(ctx context.Context) (killed time.Time, restart func(context.Context) error, err error) {
			return cfg.Fleet.KillLeader(ctx, e.leader, func(ctx context.Context, address string) error {
				_, err := ask(ctx, address)
				return err
			})
		},
	}, nil
}

// settingsFile is the configuration of one server, without the list of all.
func settingsFile(t timing, data string, clientPort int) string {
	return fmt.Sprintf(`tickTime=%d
initLimit=%d
syncLimit=%d
dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=*
`, t.tick.Milliseconds(), t.init, t.sync, data, clientPort)
}

// arguments are those of the Java virtual machine. Its performance counters would be a file in the system's
// temporary directory.
func arguments(file string) []string {
	return []string{
		"-Xmx256m", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true", "-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", jar + ":" + logger, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file,
	}
}

// leader returns the address of the server that leads the ensemble.
func (e *ensemble) leader(ctx context.Context) (address string, err error) {
	address, _, err = e.leading(ctx)
	return address, err
}

func (e *ensemble) leading(ctx context.Context) (string, status, error) {
	problems := []error{errors.New("no server leads the ensemble")}
	for _, address := range e.addresses {
		its, err := ask(ctx, address)
		if err == nil && its.mode == "leader" {
			return address, its, nil
		}
		problems = append(problems, err)
	}
	return "", status{}, errors.Join(problems...)
}

// writes counts transactions: each has a number, the zxid, and an entry in the servers' logs. A multi request is one.
func (e *ensemble) writes(ctx context.Context) (n int64, err error) {
	err = peer.Retry(ctx, func(ctx context.Context) error {
		_, its, err := e.leading(ctx)
		if err == nil {
			n = e.count(its.zxid)
		}
		return err
	})
	return n, err
}

// count returns the number of transactions until a zxid. Its high half is the number of the leader's epoch, its
// low half counts from 0 within an epoch.
func (e *ensemble) count(zxid int64) int64 {
	const half = 32
	e.mu.Lock()
	defer e.mu.Unlock()
	if zxid>>half == e.last>>half {
		e.sum += zxid - e.last
	} else {
		e.sum += zxid & (1<<half - 1)
	}
	e.last = zxid
	return e.sum
}
