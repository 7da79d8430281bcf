package lent

import "sync"

// Things are those that are in use, by key. The zero value has none. All methods are safe for
// concurrent use.
type Things[K comparable, V any] struct {
	mu   sync.Mutex
	lent map[K]*use[V]
}

// use is a thing and how many have it.
type use[V any] struct {
	thing V
	users int
}

// Take returns the thing with a key, which build makes if nobody has it. build must not call
// Things. Each Take is followed by one Return.
func (t *Things[K, V]) Take(key K, build func() V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.lent[key]
	if u == nil {
		if t.lent == nil {
			t.lent = make(map[K]*use[V])
		}
		u = &use[V]{thing: build()}
		t.lent[key] = u
	}
	u.users++
	return u.thing
}

// Return gives the thing with a key back, and reports whether nobody has it any more: then the
// caller ends it.
func (t *Things[K, V]) Return(key K) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.lent[key]
	if u.users--; u.users == 0 {
		delete(t.lent, key)
	}
	return u.users == 0
}
