package benchsite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics reads the members' metrics.
type metrics struct {
	urls   []string
	client *http.Client
}

// newMetrics returns the metrics of the members with these client URLs.
func newMetrics(urls []string, secure *tls.Config) *metrics {
	return &metrics{urls, &http.Client{Transport: &http.Transport{TLSClientConfig: secure}}}
}

// read requests the metrics of all members and adds them up by the names of the series; a histogram
// or a summary gives a _count and a _sum. It fails if one member does not answer: a sum without
// that member would decrease.
func (m *metrics) read(ctx context.Context) (map[string]float64, error) {
	if len(m.urls) == 0 {
		return nil, errors.New("no member has a client URL")
	}
	total := map[string]float64{}
	for _, url := range m.urls {
		url = strings.TrimSuffix(url, "/") + "/metrics"
		if err := m.readOne(ctx, url, total); err != nil {
			return nil, fmt.Errorf("%s: %w", url, err)
		}
	}
	return total, nil
}

func (m *metrics) close() error {
	m.client.CloseIdleConnections()
	return nil
}

func (m *metrics) readOne(ctx context.Context, url string, total map[string]float64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return sum(resp.Body, total)
}

// sum adds the metrics of one member to total.
func sum(text io.Reader, total map[string]float64) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	for name, family := range families {
		for _, series := range family.GetMetric() {
			// A series has one of five types; the values of the others are 0.
			total[name] += series.GetCounter().GetValue() + series.GetGauge().GetValue() + series.GetUntyped().GetValue()
			if h, s := series.GetHistogram(), series.GetSummary(); h != nil || s != nil {
				delete(total, name)
				total[name+"_count"] += float64(h.GetSampleCount() + s.GetSampleCount())
				total[name+"_sum"] += h.GetSampleSum() + s.GetSampleSum()
			}
		}
	}
	return err
}
