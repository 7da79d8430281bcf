package load

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sample is what this process takes at one moment.
type Sample struct {
	// At is since the beginning of the load, in seconds.
	At float64 `json:"at_s"`
	// Heap is what is in use on the heap right after a collection, in bytes.
	Heap int64 `json:"heap_bytes"`
	// RSS is what of this process is in memory, in bytes; 0 where the system does not
	// tell. Members is that of the members of etcd, together.
	RSS     int64 `json:"rss_bytes"`
	Members int64 `json:"members_rss_bytes"`
	// Goroutines is their number.
	Goroutines int64 `json:"goroutines"`
	// Processor is the processor time that this process has used so far, in seconds, and
	// that of the members that run.
	Processor        float64 `json:"cpu_s"`
	MembersProcessor float64 `json:"members_cpu_s"`
	// Departures is how many there have been, and Faults how many candidacies and tenures
	// the faults have ended.
	Departures int64 `json:"departures"`
	Faults     int64 `json:"ended_by_faults"`
}

// weigh collects the garbage and takes a sample.
func weigh(since time.Time) Sample {
	runtime.GC()
	runtime.GC() // takes what pools still held in the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	own, _ := process(os.Getpid())
	s := Sample{
		At: time.Since(since).Seconds(), Heap: int64(m.HeapAlloc), Goroutines: int64(runtime.NumGoroutine()),
		RSS: own.rss, Processor: own.seconds,
	}
	for _, child := range children() {
		s.Members += child.rss
		s.MembersProcessor += child.seconds
	}
	return s
}

// usage is what /proc tells of a process.
type usage struct {
	parent  int
	rss     int64
	seconds float64
}

// tick is the unit of processor times in /proc on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// process reads /proc/<pid>/stat; false where there is none.
func process(pid int) (usage, bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return usage{}, false
	}
	// The name, in brackets, may contain anything.
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 22 {
		return usage{}, false
	}
	number := func(field int) int64 { // as numbered in proc(5); the third is the first after the name
		n, _ := strconv.ParseInt(fields[field-3], 10, 64) // a field that is none is 0
		return n
	}
	return usage{
		parent:  int(number(4)),
		rss:     number(24) * int64(os.Getpagesize()),
		seconds: (time.Duration(number(14)+number(15)) * tick).Seconds(),
	}, true
}

// children are the processes that this one has started: the members.
func children() []usage {
	entries, _ := os.ReadDir("/proc") // nothing where there is none
	var all []usage
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if u, ok := process(pid); ok && u.parent == os.Getpid() {
			all = append(all, u)
		}
	}
	return all
}

// loadAverage is how busy the machine was in the last minute, as the system words it.
func loadAverage() string {
	line, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(line), " ")
	return first
}

// tolerance is by how much more the last third of a run may have than the second.
const tolerance = 0.05

// fewest is how many samples a third must have to be judged.
const fewest = 20

// Flat says whether something grows: the medians of the second and of the last third.
type Flat struct {
	Second int64   `json:"second_third"`
	Last   int64   `json:"last_third"`
	Change float64 `json:"change"`
	// Judged is false where there were too few samples, or none of this kind.
	Judged bool `json:"judged"`
}

// Grew reports whether it was judged and found to have grown.
func (f Flat) Grew() bool { return f.Judged && f.Change > tolerance }

func flat(samples []Sample, of func(Sample) int64) Flat {
	third := len(samples) / 3
	if third == 0 {
		return Flat{}
	}
	f := Flat{Second: median(samples[third:2*third], of), Last: median(samples[2*third:], of)}
	if f.Second > 0 {
		f.Change = float64(f.Last)/float64(f.Second) - 1
		f.Judged = third >= fewest
	}
	return f
}

func median(samples []Sample, of func(Sample) int64) int64 {
	all := make([]int64, 0, len(samples))
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
