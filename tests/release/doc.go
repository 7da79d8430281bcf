// Package release rehearses a release. It makes one of the work tree with .ci/release, in a
// repository of its own, and uses it as an external user does: from a module proxy, in empty
// modules, with a module cache that has none of our modules.
//
//	go test ./tests/release
//
// # What is shown
//
//   - The published modules have no replace directives, require each other at the released
//     version, and need no file that is not published (TestRelease/modules).
//   - go.mod and go.sum of the tagged commit are tidy, so it builds without the workspace
//     (TestRelease/tidy).
//   - go install makes the command, which prints its version (TestRelease/command), starts etcd,
//     and leads after a program of another module, which has the library and none of our other
//     modules (TestRelease/library).
//   - The program of docs/getting-started.md builds in an empty module; one of two instances
//     leads, and the other one after it (TestRelease/getting_started).
//   - Another program gets metrics and traces, and all packages build
//     (TestRelease/observability).
//   - .ci/release refuses to release an invalid state (TestRelease/refused), changes
//     nothing in a dry run (TestRelease/built/dry_run, in a fourth of the runs or with ELDEST_ALL), and never pushes.
//
// # What it costs
//
// Everything is built with -trimpath, so that packages built in a new module cache are found in the
// build cache the next time. The new module cache has links to the modules of the usual one, except ours;
// no network is used for them.
package release
