package benchsite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Meters reads the counters of the servers.
type Meters struct {
	urls   []string
	client *http.Client
}

// NewMeters returns one for the members with these client URLs. The caller must Close it.
func NewMeters(urls []string, secure *tls.Config) *Meters {
	return &Meters{urls: urls, client: &http.Client{Transport: &http.Transport{TLSClientConfig: secure}}}
}

// Read asks all members and adds up what they say, by the names of the series; of a
// histogram or a summary there are a _count and a _sum. It fails if one member does not
// answer: a sum without it would go down.
func (m *Meters) Read(ctx context.Context) (map[string]float64, error) {
	if len(m.urls) == 0 {
		return nil, errors.New("no member has a client URL")
	}
	total := map[string]float64{}
	for _, url := range m.urls {
		if err := m.read(ctx, strings.TrimSuffix(url, "/")+"/metrics", total); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// Close ends the connections.
func (m *Meters) Close() { m.client.CloseIdleConnections() }

func (m *Meters) read(ctx context.Context, url string, total map[string]float64) error {
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
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if err := sum(resp.Body, total); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// sum adds what one member says.
func sum(text io.Reader, total map[string]float64) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return err
	}
	for name, family := range families {
		for _, series := range family.GetMetric() {
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
				total[name+"_count"] += float64(series.GetHistogram().GetSampleCount())
				total[name+"_sum"] += series.GetHistogram().GetSampleSum()
			case dto.MetricType_SUMMARY:
				total[name+"_count"] += float64(series.GetSummary().GetSampleCount())
				total[name+"_sum"] += series.GetSummary().GetSampleSum()
			default:
				// One of the three; the others are 0.
				total[name] += series.GetCounter().GetValue() + series.GetGauge().GetValue() + series.GetUntyped().GetValue()
			}
		}
	}
	return nil
}
