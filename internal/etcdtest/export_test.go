package etcdtest

// Dir is the directory of the cluster's data.
func (c *Cluster) Dir() string { return c.dir.path }

// Begin starts the member's process, and tells it nothing.
func (m *Member) Begin() error { return m.start() }

// Pid is the process ID of the running member.
func (m *Member) Pid() int { return m.running().cmd.Process.Pid }

// Child is the process ID of the etcd that the running member's process runs; 0 for the embedded one.
func (m *Member) Child() int { return int(m.running().child.Load()) }

// Attempts repeats a change of the members until it is answered.
var Attempts = attempts
