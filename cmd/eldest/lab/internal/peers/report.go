package peers

import (
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// Report is the result of a run, and the JSON object that programs read.
type Report struct {
	Time  time.Time   `json:"time"`
	Go    string      `json:"go"`
	Setup bench.Setup `json:"setup"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// Incomplete is why the run ended early, "" if it did not.
	Incomplete string `json:"incomplete,omitempty"`
	// Systems are those that were measured, Eldest first.
	Systems []SystemReport `json:"systems"`
	// Skipped are those that are not installed here. If servers do not start, their results are errors.
	Skipped []Skipped `json:"skipped,omitempty"`
	// Lacks are the scenarios that a system does not have, with the reason.
	Lacks []Lack `json:"lacks,omitempty"`
	// Unprovoked are the leaders that lost their leadership without a fault.
	Unprovoked []Unprovoked `json:"unprovoked,omitempty"`
	Results    []Result     `json:"results"`
}

// SystemReport is a system that was measured. Client is the client's module and its version.
type SystemReport struct {
	peer.System
	Version string `json:"version"`
	Nodes   int    `json:"nodes"`
	Client  string `json:"client,omitempty"`
}

// Skipped is a system that is not installed.
type Skipped struct {
	System string `json:"system"`
	Reason string `json:"reason"`
}

// Lack is a scenario that a system does not have.
type Lack struct {
	System   string `json:"system"`
	Setting  string `json:"setting,omitempty"` // "" for all
	Scenario string `json:"scenario"`
	Reason   string `json:"reason"`
}

// Unprovoked is how many leaders of a system lost their leadership without a fault. Their rounds were set up once
// more where that is possible, and are errors otherwise.
type Unprovoked struct {
	System  string `json:"system"`
	Setting string `json:"setting"`
	Count   int    `json:"count"`
}

// Result is one metric of one system: Contender is the system's name, Regime the name of the settings.
type Result struct {
	Scenario string `json:"scenario"`
	bench.Result
	// None is how many rounds had no such event within Limit: nobody took the leadership over, for instance.
	// They are neither samples nor errors.
	None  int           `json:"none,omitempty"`
	Limit time.Duration `json:"limit,omitempty"`
}
