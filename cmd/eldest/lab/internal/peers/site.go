package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

const (
	// starting is how long the servers of a system may take to start, and to start again.
	starting = 2 * time.Minute
	// atOnce is how many systems or turns are set up at a time: more would only slow each other down.
	atOnce = 3
)

// site is a system that runs, with one set of settings.
type site struct {
	system   peer.System
	setting  string
	servers  peer.Servers
	programs *Programs
	dir      string

	mu   sync.Mutex
	died error // of the first server that ended by itself
}

// start starts the servers of a system.
func (r *run) start(ctx context.Context, system peer.System, setting string) (*site, error) {
	dir := filepath.Join(r.dir, setting+"-"+system.Name)
	tmp := dir + "-tmp"
	if err := errors.Join(makeDir(dir, 0o755), makeDir(tmp, 0o777|os.ModeSticky)); err != nil {
		return nil, err
	}
	s := &site{system: system, setting: setting, dir: dir, programs: NewPrograms(r.spawner, tmp)}
	ctx, cancel := context.WithTimeoutCause(ctx, starting, fmt.Errorf("the servers do not serve after %v", starting))
	defer cancel()
	servers, err := system.Start(ctx, peer.ServerConfig{
		Setting: setting, Dir: dir, Executable: r.options.Executable,
		Run: s.programs.Run, Ports: r.ports.Take, Died: s.die,
	})
	if err != nil {
		s.programs.Close()
		return nil, errors.Join(err, removeDir(dir), removeDir(tmp))
	}
	s.servers = servers
	return s, nil
}

// die is called when a server has ended by itself.
func (s *site) die(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.died == nil {
		s.died = fmt.Errorf("a server has died: %w", shorten(err))
	}
}

// shorten keeps the end of the text of an error, which may hold the output of a process.
func shorten(err error) error {
	const most = 400
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = "..." + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return errors.New(text)
}

// broken returns why no turn makes sense any more, or nil.
func (s *site) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.died
}

// close ends the servers.
func (s *site) close() error {
	err := s.servers.Close()
	s.programs.Close()
	return errors.Join(err, removeDir(s.dir), removeDir(s.programs.tmp))
}

// limit is how long a turn waits for a successor.
func (s *site) limit() time.Duration { return limitOf(s.system.Settings[s.setting].Loss) }

// limitOf is the limit for a system that notices a failure after loss, at most.
func limitOf(loss time.Duration) time.Duration {
	if loss == 0 {
		return 15 * time.Second
	}
	return min(2*loss+10*time.Second, 75*time.Second)
}
