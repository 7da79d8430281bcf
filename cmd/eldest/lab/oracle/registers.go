package oracle

import "strings"

// isRegister reports whether leaders write the key.
func (h *History) isRegister(key string) bool {
	return h.Data != "" && (key == h.Data || strings.HasPrefix(key, h.Data+"/"))
}

// byNobody reports whether a register was deleted, and by no guarded write.
func (c Change) byNobody() bool { return c.Deleted && c.Value == "" }

// commit is one guarded write, as the store committed it.
type commit struct {
	Change
	register string // its name, where there are several
	token    int64
	name     string
}

// commits returns the guarded writes in the order of revisions. What was written by nobody
// known is none; I2 reports it.
func (h *History) commits() []commit {
	var all []commit
	for _, c := range h.Changes {
		if !h.isRegister(c.Key) || c.byNobody() {
			continue
		}
		if token, name, ok := parseWrite(c.Value); ok {
			register := strings.TrimPrefix(strings.TrimPrefix(c.Key, h.Data), "/")
			all = append(all, commit{c, register, token, name})
		}
	}
	return all
}

// byName returns the writes that somebody asked for, by their names.
func (h *History) byName() map[string][]commit {
	all := map[string][]commit{}
	for _, c := range h.commits() {
		if !c.Opens {
			all[c.name] = append(all[c.name], c)
		}
	}
	return all
}
