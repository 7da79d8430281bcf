package peer

// Names are the names of all systems, in the order in which they are shown.
var Names = []string{"eldest", "concurrency", "client-go", "zookeeper", "nats", "redis", "redlock", "postgres", "raft"}
