package oracle

import (
	"testing"
	"time"
)

func TestI5(t *testing.T) {
	quiet := Event{Kind: Quiet}
	queued := func() *story { return tell().join("a", 0xa).put(0xa).join("b", 0xb).put(0xb) }
	try(t, I5, []tried{
		{"nobody leads", queued().at(quiet), 1},
		{"waits behind one who left", queued().is("a", Won, 2).is("a", Ended, 2).del(0xa, 2).at(quiet), 1},
		{"ghost of one who gave up", queued().is("a", Failed, 0).at(quiet), 1},
		{"ghost of one who crashed", queued().is("a", Won, 2).is("a", Crashed, 0).at(quiet), 1},
		{"a waiter leads too", queued().is("a", Won, 2).is("b", Won, 3).at(quiet), 1},
		{"leads without a key", queued().is("a", Won, 2).del(0xa, 2).del(0xb, 3).is("b", Failed, 0).at(quiet), 1},
		{"waits without a key", queued().is("a", Won, 2).del(0xb, 3).at(quiet), 1},
		{"leads by another life of its key", tell().join("a", 0xa).put(0xa).is("a", Won, 2).del(0xa, 2).put(0xa).at(quiet), 1},
		{"ghost of one who idles", queued().is("a", Failed, 0).wait(2*time.Second).del(0xa, 2), 1},
		{"ghost that came late", tell().join("a", 0xa).is("a", Failed, 0).put(0xa).wait(2*time.Second).del(0xa, 2), 1},
		{"ghost of an ended tenure", queued().is("a", Won, 2).is("a", Ended, 2).wait(2*time.Second).join("a", 0xa), 1},
		{"late, and swept", tell().join("a", 0xa).is("a", Failed, 0).put(0xa).del(0xa, 2).wait(2 * time.Second), 0},
		{"adopted", tell().join("a", 0xa).is("a", Failed, 0).put(0xa).join("a", 0xa).wait(2 * time.Second), 0},
		{"cut off", queued().at(Event{Who: "a", Kind: Trouble, Until: time.Minute}).is("a", Failed, 0).wait(2*time.Second).del(0xa, 2), 0},
		{"one leads, one waits", queued().is("a", Won, 2).at(quiet), 0},
		{"what comes later does not count", queued().is("a", Won, 2).at(quiet).is("a", Crashed, 0), 0},
		{"nobody is there", queued().is("a", Failed, 0).is("b", Failed, 0).del(0xa, 2).del(0xb, 3).at(quiet), 0},
		{"not judged", queued(), 0},
	})
}
