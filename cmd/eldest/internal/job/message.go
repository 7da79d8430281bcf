//go:build unix

package job

import (
	"encoding/json"
	"time"
)

// order is one line from the owner to its keeper. Lines are handled in order.
type order struct {
	// Cgroup is the path of the control group in which processes are started.
	Cgroup []byte `json:"cgroup,omitempty"`
	// Deadline replaces the one before, unless that has begun to take effect.
	Deadline *Deadline `json:"deadline,omitempty"`
	// Start starts a process.
	Start *startOrder `json:"start,omitempty"`
	// StopBy is a reading of Now: the program has been told to end and is killed then,
	// whatever deadlines may follow.
	StopBy time.Duration `json:"stop_by,omitempty"`
	// Kill kills everything, now.
	Kill bool `json:"kill,omitempty"`
	// Farewell is for Keep's caller, on behalf of an owner that has died.
	Farewell []byte `json:"farewell,omitempty"`
	// Dismissed says that the owner lives on.
	Dismissed bool `json:"dismissed,omitempty"`
	// Reap says that the program's group will not be signalled any more.
	Reap bool `json:"reap,omitempty"`
}

// startOrder is a process to start.
type startOrder struct {
	// ID is the hook's, 0 for the program.
	ID int `json:"id"`
	// Path is the executable, Args[0] what it is called. Bytes, because none of them
	// need be text, and a string in JSON is.
	Path  []byte        `json:"path"`
	Args  [][]byte      `json:"args"`
	Env   [][]byte      `json:"env"`
	Limit time.Duration `json:"limit,omitempty"` // of a hook; 0 is none
	// Mute sends its stdout nowhere.
	Mute bool `json:"mute,omitempty"`
}

// report is one line from the keeper to its owner.
type report struct {
	// Started is the program's process ID.
	Started int `json:"started,omitempty"`
	// Refused is why the program was not started.
	Refused string `json:"refused,omitempty"`
	// Late says that it was not started because of the deadline.
	Late bool `json:"late,omitempty"`
	// Ungrouped is why a process was started outside of the control group.
	Ungrouped string `json:"ungrouped,omitempty"`
	// Warned says that the deadline is near and the program has been sent SIGTERM.
	Warned bool `json:"warned,omitempty"`
	// Hook tells of a hook's end.
	Hook *hookReport `json:"hook,omitempty"`
	// Cleared says that nothing runs any more; the program was not waited for yet.
	Cleared bool `json:"cleared,omitempty"`
	// Reaped says how the program ended.
	Reaped *Status `json:"reaped,omitempty"`
}

// hookReport is how a hook ended, or why it did not start.
type hookReport struct {
	ID       int    `json:"id"`
	Status   Status `json:"status"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Error    string `json:"error,omitempty"`
}

// line renders a message.
func line(message any) []byte {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // plain structs of strings and numbers
	}
	return append(data, '\n')
}

// startOf makes an order of a command.
func startOf(id int, c Command) order {
	return order{Start: &startOrder{
		ID: id, Path: []byte(c.Path), Args: asBytes(c.Args), Env: asBytes(c.Env), Limit: c.Limit, Mute: c.Mute,
	}}
}

func asBytes(texts []string) [][]byte {
	all := make([][]byte, len(texts))
	for i, text := range texts {
		all[i] = []byte(text)
	}
	return all
}

func asText(all [][]byte) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = string(one)
	}
	return texts
}
