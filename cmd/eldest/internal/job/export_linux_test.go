package job

// For tests of both ways to find children.
var (
	AskAll   = askAll
	Children = children
)

// Writing reports whether an order is being written.
func (j *Job) Writing() bool {
	if j.writing.TryLock() {
		j.writing.Unlock()
		return false
	}
	return true
}
