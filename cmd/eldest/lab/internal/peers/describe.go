package peers

import (
	"runtime/debug"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// describe adds a system that has started to the report.
func (r *run) describe(s *site) {
	described := SystemReport{
		Name: s.system.Name, Title: s.system.Title, Version: s.servers.Version(), Nodes: s.servers.Nodes(),
		Client: moduleVersion(s.system.Module), Recipe: s.system.Recipe, Links: s.system.Links,
		Guard: s.system.Guard, Unfair: slices.Clone(s.system.Unfair), Settings: map[string]SettingReport{},
	}
	for _, name := range peer.SettingNames {
		setting := s.system.Settings[name]
		described.Settings[name] = SettingReport{Values: setting.Values, Loss: setting.Loss}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.systems[s.system.Name] = described
}

// moduleVersion returns a Go module with the version that is part of this program, "" for none.
func moduleVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || module == "" {
		return module
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			if m.Replace != nil && m.Replace.Version != "" {
				m = m.Replace
			}
			// Modules of this repository have no version of their own here.
			if m.Version == "" || m.Version == "(devel)" || strings.HasPrefix(m.Version, "v0.0.0-00010101") {
				break
			}
			return module + " " + m.Version
		}
	}
	return module
}
