// Package release rehearses a release. It makes one of the work tree with .ci/release, in a
// repository of its own, and uses it as a stranger does: from a module proxy, in empty modules,
// with a module cache that has nothing of ours.
//
//	go test ./tests/release
//
// # What is shown
//
//   - The published modules have no replace directives, require each other at the released
//     version, and need no file that is not published (TestRelease/modules).
//   - go.mod and go.sum of the tagged commit are tidy, so it builds without the workspace
//     (TestRelease/tidy).
//   - go install makes the command, which knows its version (TestRelease/command), starts etcd, and
//     leads after a program of another module, which has got the library and nothing of our other
//     modules (TestRelease/library).
//   - The program of docs/getting-started.md builds in an empty module; of two of it one leads, and the
//     other one after it (TestRelease/getting_started).
//   - Another program gets metrics and traces, and all packages build (TestRelease/observability).
//   - .ci/release refuses what cannot be released (TestNothingIsReleased/refused), changes
//     nothing in a dry run (TestNothingIsReleased/dry_run), and never pushes.
//
// # What it costs
//
// Everything is built with -trimpath, so that what is built in a new module cache is found in
// the build cache the next time. No network is used for modules that are in the module cache.
package release
