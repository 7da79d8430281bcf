// Package view builds the queue of an election from the changes of its keys. It sends nothing:
// package internal/watch delivers the changes.
package view
