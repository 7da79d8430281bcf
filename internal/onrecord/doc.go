// Package onrecord opens the runs on record: what the long runs wrote whose tables stand in
// the documents. They lie in docs/data, compressed, and docs/data/README.md says which is
// which. The tests that hold a table against its run read it here, and so does what draws
// a picture from one; nothing that users import does.
package onrecord
