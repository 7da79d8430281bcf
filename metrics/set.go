package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// set has the metrics of one election: those that hooks update, and the descriptions of all.
type set struct {
	definitions []*definition
	descs       map[*definition]*prometheus.Desc
	counters    map[*definition]*prometheus.CounterVec
	histograms  map[*definition]*prometheus.HistogramVec
}

// newSet makes the metrics, with 0 for every combination of their label values.
func newSet(election string, definitions []*definition) set {
	of := prometheus.Labels{"election": strings.ToValidUTF8(election, "\ufffd")}
	s := set{
		definitions: definitions,
		descs:       make(map[*definition]*prometheus.Desc),
		counters:    make(map[*definition]*prometheus.CounterVec),
		histograms:  make(map[*definition]*prometheus.HistogramVec),
	}
	for _, d := range definitions {
		s.descs[d] = prometheus.NewDesc(d.name, d.help, d.names(), of)
		switch {
		case d.kind == histogram:
			options := prometheus.HistogramOpts{Name: d.name, Help: d.help, ConstLabels: of, Buckets: d.buckets}
			vec := prometheus.NewHistogramVec(options, d.names())
			d.each(func(values ...string) { vec.WithLabelValues(values...) })
			s.histograms[d] = vec
		case d.kind == counter && !d.computed:
			vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help, ConstLabels: of}, d.names())
			d.each(func(values ...string) { vec.WithLabelValues(values...) })
			s.counters[d] = vec
		}
	}
	return s
}

// inc increases a counter by one.
func (s *set) inc(d *definition, labels ...string) { s.counters[d].WithLabelValues(labels...).Inc() }

// observe adds a value to a histogram.
func (s *set) observe(d *definition, value float64, labels ...string) {
	s.histograms[d].WithLabelValues(labels...).Observe(value)
}

// describe implements Describe of prometheus.Collector.
func (s *set) describe(to chan<- *prometheus.Desc) {
	for _, d := range s.definitions {
		to <- s.descs[d]
	}
}

// collect is the part of Collect for the metrics that hooks update.
func (s *set) collect(to chan<- prometheus.Metric) {
	for _, vec := range s.counters {
		vec.Collect(to)
	}
	for _, vec := range s.histograms {
		vec.Collect(to)
	}
}

// number is the part of Collect for one value that is computed at scrape.
func (s *set) number(to chan<- prometheus.Metric, d *definition, value float64, labels ...string) {
	kind := prometheus.GaugeValue
	if d.kind == counter {
		kind = prometheus.CounterValue
	}
	to <- prometheus.MustNewConstMetric(s.descs[d], kind, value, labels...)
}
