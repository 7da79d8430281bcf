package layers

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Violation is one broken rule.
type Violation struct {
	// Where is the package or the file.
	Where string
	// What breaks the rule, and Why there is one.
	What, Why string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Where, v.What, v.Why) }

// Check holds packages against the rules and returns what is broken, in order.
func Check(packages map[string]*Package) []Violation {
	var broken []Violation
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		p := packages[name]
		key, room, ok := rule(name)
		if !ok {
			broken = append(broken, Violation{name, "has no rule", "a room that nobody planned imports what it likes; add it to Rooms"})
			continue
		}
		for _, imported := range p.Imports {
			if imported == "unsafe" && slices.Contains(p.Generated, imported) {
				continue // what a generator needs it for is the generator's business
			}
			if why := room.refuses(key, imported); why != "" {
				broken = append(broken, Violation{name, "imports " + imported, why})
			}
		}
		for _, at := range p.Goroutines {
			if room.Still != "" {
				broken = append(broken, Violation{at, "starts a goroutine", room.Still})
			}
		}
		broken = append(broken, shape(name, p)...)
	}
	return broken
}

// rule finds the rule of a package: its own, or that of the nearest "/..." above.
func rule(name string) (key string, r Room, ok bool) {
	if r, ok = Rooms[name]; ok {
		return name, r, true
	}
	for at := name; at != "."; at = path.Dir(at) {
		if r, ok = Rooms[at+"/..."]; ok {
			return at + "/...", r, true
		}
	}
	return "", Room{}, false
}

// refuses returns why the room may not import a path; empty: it may.
func (r Room) refuses(key, imported string) string {
	if ours, ok := relative(imported); ok {
		if _, ok := find(r.May, ours); ok {
			return ""
		}
		return r.Otherwise
	}
	if pattern, ok := find(r.MustNot, imported); ok {
		return r.MustNot[pattern]
	}
	if pattern, ok := find(Everywhere, imported); ok {
		if Excused[key+": "+pattern] != "" {
			return ""
		}
		return Everywhere[pattern]
	}
	if _, light := find(Light, imported); !light && !r.Heavy && strings.Contains(imported, ".") {
		return "the root module is light: whoever embeds eldest builds etcd's client and nothing heavier"
	}
	return ""
}

// relative turns the path of one of our packages into its name in Rooms.
func relative(imported string) (string, bool) {
	if imported == Module {
		return ".", true
	}
	return strings.CutPrefix(imported, Module+"/")
}

// find returns the entry that covers a path: itself, or an "x/..." above it.
func find(m map[string]string, name string) (string, bool) {
	if _, ok := m[name]; ok {
		return name, true
	}
	for at := name; at != "."; at = path.Dir(at) {
		if _, ok := m[at+"/..."]; ok {
			return at + "/...", true
		}
	}
	return "", false
}

// nameless are file names that say who uses a file, not what it owns.
var nameless = []string{"util", "utils", "helper", "helpers", "common", "types", "misc", "shared"}

// shape checks a package's files.
func shape(name string, p *Package) []Violation {
	var broken []Violation
	if !p.Documented {
		broken = append(broken, Violation{name, "has no doc.go with a package comment", "a reader starts there"})
	}
	for _, file := range slices.Sorted(maps.Keys(p.Lines)) {
		if n := p.Lines[file]; n > MaxLines {
			broken = append(broken, Violation{file, fmt.Sprintf("has %d lines", n), fmt.Sprintf("one idea to a file; over %d lines there are more", MaxLines)})
		}
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test")
		if slices.Contains(nameless, base) {
			broken = append(broken, Violation{file, "is named " + base, "a file is named for the one thing it owns"})
		}
	}
	if slices.Contains(nameless, path.Base(name)) {
		broken = append(broken, Violation{name, "is named " + path.Base(name), "a package is named for the one thing it owns"})
	}
	return broken
}
