package rig

// Freeze stops the process on the host as SIGSTOP does, as far as the network can
// tell: nothing leaves and nothing is taken in until [Host.Thaw], whatever heals
// meanwhile, and then everything at once. What the network cannot do is to stop
// timers and to let clocks run on: whoever plays the process gives it a clock that
// stands still meanwhile and jumps at the end, which is what stopped timers make of
// it.
func (h *Host) Freeze() {
	h.change(Both, func(*weather) { h.frozen = true })
}

// Thaw lets a frozen host go on.
func (h *Host) Thaw() {
	h.change(Both, func(*weather) { h.frozen = false })
}
