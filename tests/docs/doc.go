// Package docs checks the documentation of the repository: every Markdown file, so that
// what stands there about files, names, commands and code is so. The rules for those who
// write pages are in docs/README.md.
//
//	go test ./tests/docs                      # all of it, in less than a minute
//	go test ./tests/docs -run TestExternal -v # lists the addresses elsewhere, fetches none
//
// Not checked: whether a sentence is true. A statement names a test, a capture, a file
// or an address, and those are there; what it makes of them is for readers.
//
// # What is read
//
// Repository is the tree: its files, its pages, the names of its tests. A Page is one
// Markdown file as goldmark, a CommonMark parser with GitHub's additions, reads it: its
// headings, links, spans of code and fenced blocks, each with its line.
//
// # What is found
//
// Each check returns faults, and a Fault names page, line and kind:
//
//	link     a file, an anchor or a line that is not there (link.go)
//	reach    a page below docs/ to which no link leads (reach.go)
//	name     a test, a name in Go or a path in a span of code (name.go)
//	mark     a block that does not say what it is (mark.go)
//	go       a program that does not compile (gocode.go)
//	file     a block that is not what its file has (excerpt.go)
//	parse    JSON, YAML or shell that does not parse (data.go, command.go)
//	command  a command, a flag, a package or a test that does not exist (command.go)
//	run      a command that ended or printed otherwise (run.go, console.go)
//	word     a word that readers must guess at (words.go), in comments and strings of Go too
//
// TestKindsAreFound breaks one page for each of them but the last, and sees the fault.
//
// # How commands run
//
// By bash, from the root, against an etcd of one member for each page; a block has a
// shell of its own, and a process group that is killed with it. What a block waits for it waits for
// itself; nothing here sleeps and looks. A block that has not ended after a minute is a
// fault. Only commands that change nothing in the tree may run (allowed.go). "go test" within a page is looked at and not run: this is one.
package docs
