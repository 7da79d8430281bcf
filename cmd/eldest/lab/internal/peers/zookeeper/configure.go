package zookeeper

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// jar is the library of Debian's package. Its manifest names those that it needs.
const jar = "/usr/share/java/zookeeper.jar"

// logger writes log lines to stderr. Without it the servers log nothing.
const logger = "/usr/share/java/slf4j-simple.jar"

// configured is a server that can be started.
type configured struct {
	number  int
	address string // of clients
	program peer.Program
}

// configure writes the configuration of each server.
func configure(cfg peer.ServerConfig) ([]configured, error) {
	t, err := timingOf(cfg.Setting)
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("zookeeper: a Java runtime (Debian: default-jre-headless) is %w: %w", peer.ErrMissing, err)
	}
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("zookeeper: Debian's package zookeeper is %w: %w", peer.ErrMissing, err)
	}
	ports, err := cfg.Ports(3 * size)
	if err != nil {
		return nil, err
	}
	clients, quorum, election := ports[:size], ports[size:2*size], ports[2*size:]

	var members strings.Builder
	for i := range size {
		fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, quorum[i], election[i])
	}
	var all []configured
	for i := range size {
		dir := filepath.Join(cfg.Dir, "server-"+strconv.Itoa(i+1))
		data := filepath.Join(dir, "data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(file, []byte(settingsFile(t, data, clients[i])+members.String()), 0o600); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o600); err != nil {
			return nil, err
		}
		all = append(all, configured{
			number:  i + 1,
			address: fmt.Sprintf("127.0.0.1:%d", clients[i]),
			program: peer.Program{Path: java, Args: arguments(file), Dir: dir},
		})
	}
	return all, nil
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
