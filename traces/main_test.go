package traces_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// ttl is a TTL that a busy machine can keep.
const ttl = 30 * time.Second

// recorder is an SDK that keeps the spans that have ended.
type recorder struct {
	*tracetest.InMemoryExporter
	*sdktrace.TracerProvider
	t *testing.T
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	r := &recorder{exporter, sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), t}
	t.Cleanup(func() { require.NoError(t, r.TracerProvider.Shutdown(context.Background())) })
	return r
}

// ended waits until so many spans with a name have ended, and returns them in that order.
func (r *recorder) ended(name string, n int) (found []tracetest.SpanStub) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		found = nil
		for _, span := range r.GetSpans() {
			if span.Name == name {
				found = append(found, span)
			}
		}
		return len(found) >= n
	}, etcdtest.Patience, 2*time.Millisecond, "%d spans %s", n, name)
	require.Len(r.t, found, n, name)
	return found
}

// attr returns an attribute of a span or an event; nil if it has none of the name.
func attr(of []attribute.KeyValue, name string) any {
	for _, kv := range of {
		if string(kv.Key) == name {
			return kv.Value.AsInterface()
		}
	}
	return nil
}

// events returns the names of a span's events.
func events(span tracetest.SpanStub) (names []string) {
	for _, e := range span.Events {
		names = append(names, e.Name)
	}
	return names
}
