//go:build !linux

package lease

func boot() Clock { return Monotonic() }
