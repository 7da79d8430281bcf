// Package eldest holds the nouns.
package eldest
