// Package absent detects a missing client: a nil interface, or an interface that holds a nil
// *clientv3.Client, such as a variable that was never set. Every package refuses both before it
// sends anything, and uses this function to detect them. Nil pointers of other types are accepted:
// the methods of some implementations accept them.
package absent
