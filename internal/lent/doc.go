// Package lent has things that many use at a time: made for the first user, and given back by
// each.
package lent
