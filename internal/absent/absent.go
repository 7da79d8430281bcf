package absent

import clientv3 "go.etcd.io/etcd/client/v3"

// Client reports whether v is nil or holds a nil *clientv3.Client.
func Client(v any) bool {
	client, ok := v.(*clientv3.Client)
	return v == nil || ok && client == nil
}

// KV reports whether a KV is absent, or a client without one: a client that was made from parts may have
// none, and panics.
func KV(v clientv3.KV) bool {
	client, ok := v.(*clientv3.Client)
	return Client(v) || ok && client.KV == nil
}

// Watcher is KV for a Watcher.
func Watcher(v clientv3.Watcher) bool {
	client, ok := v.(*clientv3.Client)
	return Client(v) || ok && client.Watcher == nil
}
