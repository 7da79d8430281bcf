package etcdtest

import (
	"reflect"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// RefusedWatch is the response of a client whose watch etcd has refused, for tests that are their own
// watcher. Clients before 3.7 do not let others set the reason: the test is skipped with them.
func RefusedWatch(t testing.TB, reason error) clientv3.WatchResponse {
	t.Helper()
	resp := clientv3.WatchResponse{Canceled: true}
	field := reflect.ValueOf(&resp).Elem().FieldByName("CancelReason")
	if !field.IsValid() {
		t.Skip("SKIPPED: with etcd's client before 3.7 a test cannot make the response of a refused watch")
	}
	field.SetString(reason.Error())
	return resp
}
