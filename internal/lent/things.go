package lent

import "sync"

// Things are the things in use, by key. The zero value has none. All methods are safe for
// concurrent use.
type Things[K comparable, V any] struct {
	mu   sync.Mutex
	lent map[K]*use[V]
}

// use is a thing and the number of its users.
type use[V any] struct {
	thing V
	users int
}

// Take returns the thing with a key; if it is not in use, build makes it. build must not call
// Things. Each Take must be followed by one Return.
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

// Return returns the thing with a key, and reports whether it is not in use any more: then the
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
