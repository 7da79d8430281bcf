// Package layout checks rules of the tree that no linter can check: each package has a list of
// import rules in .golangci.yml and a doc.go, files and packages are named for what they own, and
// some packages start no goroutine.
package layout
