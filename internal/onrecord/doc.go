// Package onrecord opens the reference runs: the results of the long runs whose tables are in the
// documents. They are in docs/data, compressed; docs/data/README.md lists them. The tests that
// compare a table with its run read the run here, and so does the code that draws a picture from
// one. No package that users import does.
package onrecord
