package kv

import (
	"fmt"
	"strings"

	"github.com/eldest-io/eldest"
)

// Space is the part of etcd's keys in which the service of one election keeps its data. It is a
// plain value, made by SpaceOf.
//
// Invariant: no key of a space is in the range of any election.
type Space struct{ root string }

// SpaceOf returns the space of an election's service.
func SpaceOf(election string) Space { return Space{root: "/kv/" + election + "/"} }

// Data returns the etcd key under which a key's value is kept; Data("") is the prefix
// of all of them.
func (s Space) Data(key string) string { return s.root + "data/" + key }

// Key is the inverse of Data. ok is false for an etcd key that holds no data of this
// space.
func (s Space) Key(etcdKey string) (key string, ok bool) {
	key, ok = strings.CutPrefix(etcdKey, s.Data(""))
	return key, ok && key != ""
}

// Trail returns the prefix of the records' etcd keys. They are in the order of the tokens, and
// within a tenure in the order in which requests were begun; the order of the writes is that of the
// revisions.
func (s Space) Trail() string { return s.root + "trail/" }

// entry returns the key of a tenure's n-th record.
func (s Space) entry(token eldest.Token, n int64) string {
	return fmt.Sprintf("%s%016x/%016x", s.Trail(), int64(token), n)
}
