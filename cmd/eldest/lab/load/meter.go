package load

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Sample is what this process uses at one moment.
type Sample struct {
	// At is the time since the beginning of the load, in seconds.
	At float64 `json:"at_s"`
	// Heap is the memory in use on the heap right after a collection, in bytes.
	Heap int64 `json:"heap_bytes"`
	// RSS is the resident memory of this process, in bytes; 0 if the system does not report it.
	// Members is that of the members of etcd, together.
	RSS     int64 `json:"rss_bytes"`
	Members int64 `json:"members_rss_bytes"`
	// Goroutines is their number.
	Goroutines int64 `json:"goroutines"`
	// Processor is the processor time that this process has used so far, in seconds, and
	// that of the members that run.
	Processor        float64 `json:"cpu_s"`
	MembersProcessor float64 `json:"members_cpu_s"`
	// Departures is how many there have been, and Faults how many candidacies and tenures were
	// ended by faults.
	Departures int64 `json:"departures"`
	Faults     int64 `json:"ended_by_faults"`
}

// weigh collects the garbage and takes a sample.
func weigh(begun time.Time) Sample {
	runtime.GC()
	runtime.GC() // collects what pools still held in the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := Sample{At: time.Since(begun).Seconds(), Heap: int64(m.HeapAlloc), Goroutines: int64(runtime.NumGoroutine())}
	all, _ := procfs.AllProcs() // none, if the system has no /proc
	for _, p := range all {
		stat, err := p.Stat()
		switch {
		case err != nil: // it has ended meanwhile
		case stat.PID == os.Getpid():
			s.RSS, s.Processor = int64(stat.ResidentMemory()), stat.CPUTime()
		case stat.PPID == os.Getpid():
			s.Members += int64(stat.ResidentMemory())
			s.MembersProcessor += stat.CPUTime()
		}
	}
	return s
}

// loadAverage returns the system's load average of the last minute.
func loadAverage() string {
	line, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(line), " ")
	return first
}

// Flat compares the lower quartiles of the second and of the last third, to find growth: calls in progress
// when a sample is taken raise the upper ones, and a leak raises all.
type Flat struct {
	Second int64   `json:"second_third"`
	Last   int64   `json:"last_third"`
	Change float64 `json:"change"`
	// Judged is false if there were too few samples, or none of this kind.
	Judged bool `json:"judged"`
}

const (
	// fewest is the least number of samples with which a third is judged.
	fewest = 20
	// tolerance is by how much the last third of a run may exceed the second.
	tolerance = 0.05
)

// Grew reports whether it was judged and found to have grown.
func (f Flat) Grew() bool { return f.Judged && f.Change > tolerance }

func flat(samples []Sample, of func(Sample) int64) (f Flat) {
	third := len(samples) / 3
	if third == 0 {
		return f
	}
	quartile := func(some []Sample) int64 {
		values := make([]int64, len(some))
		for i, s := range some {
			values[i] = of(s)
		}
		slices.Sort(values)
		return values[len(values)/4]
	}
	f.Second, f.Last = quartile(samples[third:2*third]), quartile(samples[2*third:])
	if f.Second > 0 {
		f.Change = float64(f.Last)/float64(f.Second) - 1
		f.Judged = third >= fewest
	}
	return f
}
