package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// layout is what must stay the same between two lives of a cluster: etcd keeps
// the peer URLs in its data, and programs keep the endpoints in theirs.
type layout struct {
	Token   string         `json:"token"`
	Members []memberLayout `json:"members"`
}

type memberLayout struct {
	Name       string `json:"name"`
	ClientPort int    `json:"client_port"`
	PeerPort   int    `json:"peer_port"`
}

// layoutFile is the name of the layout's file in the data directory.
const layoutFile = "cluster.json"

// openLayout reads the layout of dir, or makes one as cfg wishes and writes it.
func openLayout(dir string, cfg Config) (layout, error) {
	path := filepath.Join(dir, layoutFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newLayout(dir, path, cfg)
	}
	if err != nil {
		return layout{}, err
	}
	var lay layout
	if err := json.Unmarshal(data, &lay); err != nil {
		return layout{}, fmt.Errorf("%s: %w", path, err)
	}
	if n := len(lay.Members); cfg.Members != 0 && cfg.Members != n {
		return layout{}, fmt.Errorf("%w: %s holds a cluster of %d members, not %d", ErrInvalid, dir, n, cfg.Members)
	}
	// The client ports may move, because etcd publishes them anew at each
	// start; the peer ports may not.
	for i := range lay.Members {
		if i < len(cfg.ClientPorts) {
			lay.Members[i].ClientPort = cfg.ClientPorts[i]
		}
	}
	return lay, nil
}

func newLayout(dir, path string, cfg Config) (layout, error) {
	n := cfg.Members
	if n == 0 {
		n = 1
	}
	if n != 1 && n != 3 && n != 5 {
		return layout{}, fmt.Errorf("%w: %d members; it can be 1, 3 or 5", ErrInvalid, cfg.Members)
	}
	if len(cfg.ClientPorts) > n {
		return layout{}, fmt.Errorf("%w: %d client ports for %d members", ErrInvalid, len(cfg.ClientPorts), n)
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		return layout{}, err
	}
	lay := layout{Token: fmt.Sprintf("eldest-%x", rand.Uint64())}
	for i := range n {
		m := memberLayout{Name: fmt.Sprintf("m%d", i+1), ClientPort: ports[2*i], PeerPort: ports[2*i+1]}
		if i < len(cfg.ClientPorts) {
			m.ClientPort = cfg.ClientPorts[i]
		}
		lay.Members = append(lay.Members, m)
	}
	data, err := json.MarshalIndent(lay, "", "  ")
	if err != nil {
		return layout{}, err
	}
	// Only the owner may read the data of a member, etcd sees to that; so too
	// here.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return layout{}, err
	}
	return lay, os.WriteFile(path, append(data, '\n'), 0o600)
}

// configs turns the layout into the configs of its members.
func (l layout) configs(dir string, cfg Config, temporary bool) []MemberConfig {
	var initial []string
	cfgs := make([]MemberConfig, len(l.Members))
	for i, m := range l.Members {
		cfgs[i] = MemberConfig{
			Name:      m.Name,
			Dir:       filepath.Join(dir, m.Name),
			ClientURL: fmt.Sprintf("http://127.0.0.1:%d", m.ClientPort),
			PeerURL:   fmt.Sprintf("http://127.0.0.1:%d", m.PeerPort),
			Token:     l.Token,
			Heartbeat: cfg.Heartbeat,
			Election:  cfg.Election,
			NoFsync:   temporary,
			Log:       cfg.Log,
		}
		initial = append(initial, m.Name+"="+cfgs[i].PeerURL)
	}
	for i := range cfgs {
		cfgs[i].Initial = strings.Join(initial, ",")
	}
	return cfgs
}
