// Package identitypb has the message that is the value of a candidate, generated from value.proto.
// Package identity converts it into a plain Go value and back, with the checks that the message
// does not have; programs should use that package.
//
// Not guaranteed: that a message is a node's identity. Any bytes may decode as one.
//
// The wire format is fixed. New data is added as new fields, and programs that do not know them
// keep them. A value with fields 1 and 2 only is valid: elections had such values before there was
// an address to forward to.
//
// The Go code is committed. After a change of value.proto, run go generate, which needs nothing but
// Go, and commit the result.
package identitypb

//go:generate ../../tests/generate/run
