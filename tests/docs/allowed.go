package docs

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// allowed are the commands that a page may run: they change nothing in the tree in which they run.
// Other commands in a page are for its readers.
var allowed = strings.Fields(`eldest go : [ test true false echo printf cat grep sort uniq head tail wc tr cut seq
	sleep wait kill timeout trap set export local read mktemp curl exit return break continue`)

// goMay are the commands of the go command that a page may run, or show.
var goMay = strings.Fields("run doc list version env vet test install")

// harmless returns the commands of a block to be run that could change the tree.
func harmless(file *syntax.File) []string {
	var faults []string
	defined := map[string]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		if f, ok := node.(*syntax.FuncDecl); ok {
			defined[f.Name.Value] = true
		}
		return true
	})
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			if len(node.Args) == 0 {
				return true
			}
			name := node.Args[0].Lit()
			if !slices.Contains(allowed, name) && !defined[name] {
				faults = append(faults, fmt.Sprintf("%q is not a command that a page may run: mark the block not-run", name))
			}
			if name == "go" && (len(node.Args) < 2 || !slices.Contains(goMay, node.Args[1].Lit())) {
				faults = append(faults, "go may "+strings.Join(goMay, ", ")+" here: mark the block not-run")
			}
		case *syntax.Redirect:
			if node.Op == syntax.RdrOut || node.Op == syntax.AppOut || node.Op == syntax.RdrAll || node.Op == syntax.AppAll {
				if target := printed(node.Word); target != "/dev/null" && !strings.HasPrefix(target, "$TMP/") {
					faults = append(faults, fmt.Sprintf("what is written to %q must go to $TMP/", target))
				}
			}
		}
		return true
	})
	return faults
}

// printed is a word as it is written, without quotes around it.
func printed(word *syntax.Word) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, word); err != nil {
		return ""
	}
	return strings.Trim(b.String(), `"`)
}
