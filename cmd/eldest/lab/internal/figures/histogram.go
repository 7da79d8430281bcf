package figures

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// digits is how exact the buckets are: their width is a thousandth of their values.
const digits = 3

// Bucket is how many samples lie from From to To, both included.
type Bucket struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Count int64 `json:"count"`
}

// histogram records samples and returns the buckets that hold any, in order.
func histogram(samples []int64) []Bucket {
	var below, above []int64
	for _, s := range samples {
		if s < 0 {
			below = append(below, -s)
		} else {
			above = append(above, s)
		}
	}
	buckets := record(below)
	slices.Reverse(buckets)
	for i, b := range buckets {
		buckets[i].From, buckets[i].To = -b.To, -b.From
	}
	return append(buckets, record(above)...)
}

// record is for samples that are not negative.
func record(samples []int64) []Bucket {
	if len(samples) == 0 {
		return nil
	}
	h := hdrhistogram.New(1, max(2, slices.Max(samples)), digits)
	for _, s := range samples {
		_ = h.RecordValue(s) // it is in the range
	}
	var buckets []Bucket
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			buckets = append(buckets, Bucket{From: bar.From, To: bar.To, Count: bar.Count})
		}
	}
	return buckets
}
