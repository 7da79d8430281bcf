package keys

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eldest-io/eldest"
)

// MaxName is the longest name of an election, in bytes. etcd's only limit is the request size;
// every key and every comparison contains the name, so a kilobyte is generous.
const MaxName = 1024

const separator = "/"

// Check returns nil if name is a valid name of an election, otherwise an error that wraps
// eldest.ErrInvalid and names the fault.
func Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the election has no name", eldest.ErrInvalid)
	case len(name) > MaxName:
		return fmt.Errorf("%w: the election's name has %d bytes, at most %d are allowed",
			eldest.ErrInvalid, len(name), MaxName)
	case strings.Contains(name, separator):
		return fmt.Errorf("%w: the election's name %s contains '/', so its keys would nest with those of another election; "+
			"use a name without it and put the directory into a namespace", eldest.ErrInvalid, quoted(name))
	}
	return nil
}

// quoted quotes the beginning of a name that is not valid: what is quoted may be four times as long.
func quoted(name string) string {
	const most = 300
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}

// Prefix returns the prefix of every candidate key of the election. name must have passed Check.
func Prefix(name string) string { return name + separator }

// Candidate returns the key of the candidate with the lease in the election. name must have passed
// Check, lease must be positive.
func Candidate(name string, lease int64) string {
	return Prefix(name) + strconv.FormatInt(lease, 16)
}

// requests is the prefix of every request key. No election's range contains such a key: its name
// would have to be empty or contain a slash.
const requests = "/eldest/request/"

// newest is the prefix of every pointer; see requests.
const newest = "/eldest/newest/"

// Request returns the request key of the candidate with the lease in the election: other clients
// write requests to it. It is outside the election's range, so no client counts it as a candidate.
// name must have passed Check, lease must be positive.
func Request(name string, lease int64) string {
	return requests + Candidate(name, lease)
}

// Newest returns the key of an election's pointer, which names the candidate that registered last.
// It is outside the election's range. name must have passed Check.
func Newest(name string) string { return newest + name }

// heartbeats is the prefix of the key of every session's heartbeats; see requests.
const heartbeats = "/eldest/heartbeat/"

// Heartbeat returns the key of the heartbeats of the session with the lease, which must be positive. It
// is outside every election's range.
func Heartbeat(lease int64) string { return heartbeats + strconv.FormatInt(lease, 16) }

// Heartbeats returns the half-open range [begin, end) of the heartbeats of all sessions.
func Heartbeats() (begin, end string) { return heartbeats, End(heartbeats) }

// RequestRange returns the half-open range [begin, end) of the request keys of the election's
// candidates and of no other election's.
func RequestRange(name string) (begin, end string) {
	begin = requests + Prefix(name)
	return begin, End(begin)
}

// ParseRequest returns the lease of the candidate with this request key in the election. For any
// other key it returns an error that wraps eldest.ErrForeignKey.
func ParseRequest(name, key string) (lease int64, err error) {
	inner, ok := strings.CutPrefix(key, requests)
	if !ok {
		return 0, fmt.Errorf("%w: %q is not a request key", eldest.ErrForeignKey, key)
	}
	return Parse(name, inner)
}

// Range returns the half-open range [begin, end) of the keys of the election and of no other.
func Range(name string) (begin, end string) {
	begin = Prefix(name)
	return begin, End(begin)
}

// End returns the smallest key that is greater than every key with the given prefix: the prefix
// without trailing 0xFF bytes, its last byte plus one. If no byte is left (the prefix is empty or
// all 0xFF) there is no such key, and End returns "\x00", which means "to the end of all keys" in
// etcd.
func End(prefix string) string {
	// Not with package strings, which trims runes: these are bytes.
	for last := len(prefix) - 1; last >= 0; last-- {
		if prefix[last] < 0xFF {
			return prefix[:last] + string([]byte{prefix[last] + 1})
		}
	}
	return "\x00"
}

var errShape = errors.New("want <election>/<lease id in lower-case hex>")

// Parse returns the lease in a candidate key of the election. For any other key, which Candidate
// would not have returned, it returns an error that wraps eldest.ErrForeignKey.
func Parse(name, key string) (lease int64, err error) {
	id, ok := strings.CutPrefix(key, Prefix(name))
	if !ok {
		return 0, fmt.Errorf("%w: %q: %w", eldest.ErrForeignKey, key, errShape)
	}
	lease, err = strconv.ParseInt(id, 16, 64)
	// ParseInt accepts more than FormatInt returns (upper case, padding, a sign): a candidate key
	// must format back to the same key.
	if err != nil || lease <= 0 || Candidate(name, lease) != key {
		return 0, fmt.Errorf("%w: %q: %w", eldest.ErrForeignKey, key, errShape)
	}
	return lease, nil
}
