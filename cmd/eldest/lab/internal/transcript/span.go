package transcript

import (
	"bytes"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// span formats a key, or a range of keys by its ends.
func span(from, end []byte, n names) string {
	switch {
	case len(end) == 0:
		return key(from, n)
	case len(from) == 1 && from[0] == 0 && len(end) == 1 && end[0] == 0:
		return "all keys"
	case len(end) == 1 && end[0] == 0:
		return "keys from " + key(from, n)
	case string(end) == clientv3.GetPrefixRangeEnd(string(from)):
		return "prefix " + key(from, n)
	default:
		return "keys from " + key(from, n) + " to " + key(end, n)
	}
}

// touches reports whether a key or range has keys in common with the keys below a prefix.
func touches(from, end []byte, prefix string) bool {
	low, high := []byte(prefix), []byte(clientv3.GetPrefixRangeEnd(prefix))
	if len(end) == 0 {
		return bytes.HasPrefix(from, low)
	}
	open := len(end) == 1 && end[0] == 0
	return bytes.Compare(from, high) < 0 && (open || bytes.Compare(end, low) > 0)
}
