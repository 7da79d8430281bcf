package job

import "os"

// MessagesFD is the file descriptor of the messages in the program.
const MessagesFD = 3

// messages is the owner's end of the pipe to the program.
type messages struct {
	pipe *os.File
	// newest holds the message that is not being written yet. Job.mu guards its senders.
	newest chan []byte
}

// newMessages makes the pipe, and returns the program's end, which the keeper inherits.
func (j *Job) newMessages() (theirs *os.File, err error) {
	theirs, ours, err := os.Pipe()
	if err == nil {
		j.keeper.ExtraFiles = append(j.keeper.ExtraFiles, theirs)
		j.messages = &messages{pipe: ours, newest: make(chan []byte, 1)}
	}
	return theirs, err
}

// close ends a write that blocks. m may be nil.
func (m *messages) close() {
	if m != nil {
		_ = m.pipe.Close()
	}
}

// Send sends the program a message, which Spec.Messages makes it able to read. It does not block: a
// message that cannot be written yet, because the program does not read, is replaced by a newer one.
func (j *Job) Send(message []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.messages == nil {
		return
	}
	select {
	case <-j.messages.newest:
	default:
	}
	j.messages.newest <- message // there is room: no other sender is here
}

// write writes the messages until the keeper has ended, or none can be written.
func (j *Job) write() {
	for {
		select {
		case message := <-j.messages.newest:
			if _, err := j.messages.pipe.Write(message); err != nil {
				return // the program has ended
			}
		case <-j.gone:
			return
		}
	}
}
