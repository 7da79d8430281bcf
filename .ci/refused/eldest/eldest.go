// Package eldest has the types.
package eldest
