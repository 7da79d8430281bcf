package benchpage

import (
	"encoding/json"
	"math"
)

// hover is what a picture shows under the pointer: at each stop the values of all
// contenders.
type hover struct {
	Width  float64 `json:"width"`
	Top    float64 `json:"top"`
	Bottom float64 `json:"bottom"`
	// Stops are from left to right.
	Stops []stop `json:"stops"`
}

type stop struct {
	X    float64   `json:"x"`
	Head string    `json:"head"`
	Rows []hoverAt `json:"rows"`
}

// hoverAt is one contender's value.
type hoverAt struct {
	Name   string  `json:"name"`
	Colour string  `json:"colour"`
	Value  string  `json:"value"`
	Y      float64 `json:"y"`
}

func newHover(at area) hover {
	return hover{Width: width, Top: tenth(at.top), Bottom: tenth(at.bottom)}
}

// JSON is for the page's script.
func (h hover) JSON() string {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // numbers and strings
	}
	return string(text)
}

// tenth is exact enough for a place in a picture.
func tenth(v float64) float64 { return math.Round(v*10) / 10 }
