// Package witness is built into the nodes of a storm: each node of "eldest service node"
// then reports on its stdout, one JSON object a line, which calls its handlers were given.
// So a test knows of every call whether it began at a leader, whatever its caller was told.
//
// The command is not changed for that. The test builds it with go build -overlay, in which
// one import of servicenode.go, that of package kvpb, is replaced by this package; hence the
// name of RegisterKVServer.
//
// Beside the key-value service it registers one with streams: Append writes what comes, and
// acknowledges each write; Deaf never receives and never sends.
//
// With the environment variable of that name (Mutant) it breaks the service in every way
// that a storm must notice. A judge that is never seen to convict proves nothing.
package witness
