// Package revision returns the commit that is recorded with a reference run.
package revision
