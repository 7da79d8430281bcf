// Package revision names what a run on record was a run of.
package revision
