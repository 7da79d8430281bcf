// Package view has the queue of an election as the changes of its keys add up to. It sends
// nothing: package internal/watch brings the changes.
package view
