package peers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
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
	system  peer.System
	setting string
	servers *peer.Servers
	fleet   *peer.Fleet
	dir     string

	mu   sync.Mutex
	died error // of the first server that ended by itself
}

// start starts the servers of a system, and adds the system to the report.
func (r *run) start(ctx context.Context, system peer.System, setting string) (*site, error) {
	s := &site{system: system, setting: setting, dir: filepath.Join(r.dir, setting+"-"+system.Name)}
	if err := makeDir(s.dir); err != nil {
		return nil, err
	}
	s.fleet = peer.NewFleet(r.spawner, s.die)
	ctx, cancel := context.WithTimeoutCause(ctx, starting, fmt.Errorf("the servers do not serve after %v", starting))
	defer cancel()
	servers, err := system.Start(ctx, peer.ServerConfig{
		Setting: setting, Dir: s.dir, Executable: r.options.Executable, Fleet: s.fleet, Died: s.die,
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.servers = servers
	r.mu.Lock()
	defer r.mu.Unlock()
	r.systems[system.Name] = SystemReport{
		System: system, Version: servers.Version, Nodes: servers.Nodes, Client: moduleVersion(system.Module),
	}
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
func (s *site) close() (err error) {
	if s.servers != nil && s.servers.Close != nil {
		err = s.servers.Close()
	}
	s.fleet.Close()
	return errors.Join(err, removeDir(s.dir))
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

// moduleVersion returns a Go module with the version that is part of this program, "" for none.
func moduleVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || module == "" {
		return module
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil && m.Replace.Version != "" {
			m = m.Replace
		}
		// Modules of this repository have no version of their own here.
		if m.Version != "" && m.Version != "(devel)" && !strings.HasPrefix(m.Version, "v0.0.0-00010101") {
			return module + " " + m.Version
		}
	}
	return module
}
