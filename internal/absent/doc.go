// Package absent tells whether a client was left out: no interface at all, or an
// interface with a nil *clientv3.Client in it, which is what a variable becomes that
// nobody has set. Every room refuses both before it sends anything, and all of them by
// this one test. Nil pointers of other types are let through: there are implementations
// whose methods take them.
package absent
