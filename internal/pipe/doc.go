// Package pipe writes to a process that may have stopped reading, without waiting for it.
package pipe
