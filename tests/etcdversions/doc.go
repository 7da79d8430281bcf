// Command etcdversions runs the test suites with other versions of etcd's server than the one in this
// repository's go.mod, and prints the results.
//
//	go run ./tests/etcdversions                        # all versions, all suites: half an hour
//	go run ./tests/etcdversions -versions 3.5,3.6      # these versions
//	go run ./tests/etcdversions -suites acceptance     # this suite, with each version
//	go run ./tests/etcdversions -list                  # versions, suites and exclusions; runs nothing
//
// # Servers
//
// The servers are processes. 3.4 is Debian's package etcd-server, which must be installed; the other
// versions are built from the module proxy, once, into the user's cache directory: in a throw-away
// module that requires go.etcd.io/etcd/server/v3 of that version, and all of etcd's other modules of the
// same version, so that no replace directive is needed. Package etcdtest starts them in place of the
// embedded server because ELDEST_ETCD names them; see its doc.
//
// # Suites
//
//	acceptance   the guarantees: the tests of the root package
//	etcdtest     the faults of the test clusters themselves
//	library      the packages that send requests: lease, election, elector, observe, and so on
//	regressions  tests/regressions
//	drop-in      tests/dropin
//	interop      tests/interop
//	chaos        eldest chaos for a minute, with seed 1
//	mixed        TestRolling of this package: upgrades and downgrades, member by member, under elections
//
// A test that cannot run with a version is in the list of exclusions, with its reason, and is printed
// with the result.
//
// # Not guaranteed
//
// Speed: the suites run one after another. The client is the one of this repository, 3.7; older clients
// are another test, the root module's own go.mod (docs/etcd-versions.md).
package main
