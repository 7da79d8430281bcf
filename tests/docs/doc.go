// Package docs checks the documentation of the repository: in every Markdown file, statements about
// files, names, commands and code must be true. The rules for the authors of pages are in
// docs/README.md.
//
//	go test ./tests/docs                      # all of it, in less than a minute
//	go test ./tests/docs -run TestExternal -v # lists external addresses, fetches none
//
// Not checked: whether a sentence is true. A statement has a test, a capture, a file or an address,
// and those exist; readers must judge the conclusion.
//
// # What is read
//
// Repository is the tree: its files, its pages, the names of its tests. A Page is one Markdown file
// as goldmark, a CommonMark parser with GitHub's extensions, reads it: its headings, links, spans
// of code and fenced blocks, each with its line.
//
// # What is found
//
// Each check returns faults, and a Fault has a page, a line and a kind:
//
//	link     a file, an anchor or a line that does not exist (link.go)
//	reach    a page below docs/ to which no link leads (reach.go)
//	name     a test, a name in Go or a path in a span of code that does not exist (name.go)
//	mark     a block without the words that describe it (mark.go)
//	go       a program that does not compile (gocode.go)
//	file     a block that differs from its file (excerpt.go)
//	parse    JSON, YAML or shell that does not parse (data.go, command.go)
//	command  a command, a flag, a package or a test that does not exist (command.go)
//	run      a command that ended or printed otherwise (run.go, console.go)
//	word     a word that readers may not understand (words.go), in comments and strings of Go too
//
// TestKindsAreFound breaks one page for each of them except the last, and requires the fault.
//
// # How commands run
//
// They run in bash, from the root, with an etcd of one member for each page; a block has a shell of
// its own, and a process group that is killed with it. Each block must wait by itself for what it
// needs; this package does not poll. A block that has not ended after a minute is a fault. Only
// commands that change nothing in the tree may run (allowed.go). "go test" within a page is checked
// and not run, because this package is itself run by go test.
package docs
