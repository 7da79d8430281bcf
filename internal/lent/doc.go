// Package lent shares things between users: a thing is made for the first user, and returned by
// each.
package lent
