// Package witness is built into the nodes of a storm. Each node of "eldest service node" then
// reports on its stdout, one JSON object a line, which calls reached its handlers. So a test learns
// for every call whether it began at a leader, whatever its caller received.
//
// The command needs no change for that. The test builds it with go build -overlay, which replaces
// the import of package kvpb in servicenode.go by this package; hence the name of RegisterKVServer.
//
// Besides the key-value service it registers a service with streams: Append writes each request
// that it receives and acknowledges it; Deaf never receives and never sends.
//
// If the environment variable named by Mutant is set, it breaks the service in every way that a
// storm must notice. That tests the checks of the storm themselves.
package witness
