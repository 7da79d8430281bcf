// Package identitypb is the message that a candidate's value is, generated from
// value.proto. Package identity turns it into a plain Go value and back, with the
// checks that the message does not have; programs want that one.
//
// Not guaranteed: that a message is a node's identity. Any bytes may decode as one.
//
// The wire format is fixed. New facts come as new fields, and programs that do not
// know them keep them. A value with fields 1 and 2 only is a valid one: that is what
// elections had before there was an address to forward to.
//
// The Go code is committed. Whoever changes value.proto runs go generate, which needs
// nothing but Go, and commits what comes out.
package identitypb

//go:generate ../../tests/generate/run identity/identitypb
