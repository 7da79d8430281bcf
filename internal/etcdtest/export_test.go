package etcdtest

// Dir is the directory of the cluster's data.
func (c *Cluster) Dir() string { return c.dir.path }

// Pid is the process ID of the running member.
func (m *Member) Pid() int { return m.running().cmd.Process.Pid }
