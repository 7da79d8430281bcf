// Package heavy is of another module than eldest.
package heavy
