package participant

import (
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/lease"
)

const (
	// samplePause is the time between two samples.
	samplePause = time.Millisecond
	// sampleTold is how long nothing need be told while nothing changes.
	sampleTold = 25 * time.Millisecond
	// silence is a time between two samples that is not the scheduler's doing as a
	// rule: both are told.
	silence = 10 * time.Millisecond
	// sampleAfter is how many samples are told after the end of a tenure.
	sampleAfter = 3
)

// sample asks, every millisecond, whether the tenure's holder is certain to lead, until it is
// not, and a few times after that.
func (p *participant) sample(t contender.Tenure) {
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	var last oracle.Event // the last sample
	told := time.Duration(0)
	pending := false // last was not told
	file := func(e oracle.Event) {
		p.tell(e)
		told, pending = e.At, false
	}
	for after := 0; after < sampleAfter; {
		// Nothing may come between the readings but the question.
		at := lease.Boot().Now()
		sure := t.Holds()
		until := lease.Boot().Now()

		e := oracle.Event{Kind: oracle.Sure, At: at, Until: until, Token: t.Token()}
		if !sure {
			e.Kind = oracle.NotSure
			after++
		}
		if pending && (e.Kind != last.Kind || at-last.Until > silence) {
			file(last)
		}
		if told == 0 || e.Kind != last.Kind || e.Kind == oracle.NotSure ||
			until-last.At > silence || at-told > sampleTold {
			file(e)
		} else {
			pending = true
		}
		last = e
		<-tick.C
	}
}
