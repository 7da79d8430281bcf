package stream

import clientv3 "go.etcd.io/etcd/client/v3"

// Over makes a stream open links over a Watcher.
func Over(w clientv3.Watcher) func(l *Config) {
	return func(cfg *Config) { cfg.Open = (&lanes{watcher: w}).open }
}
