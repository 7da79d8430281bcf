package absent

import clientv3 "go.etcd.io/etcd/client/v3"

// Client reports whether v is nil or holds a nil *clientv3.Client.
func Client(v any) bool {
	client, ok := v.(*clientv3.Client)
	return v == nil || ok && client == nil
}
