package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// received are the records that came out of the Collector, by their text.
type received struct {
	sync.Mutex
	records map[string]int
	err     error
}

func (r *received) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	b, err := io.ReadAll(q.Body)
	r.Lock()
	defer r.Unlock()
	if err == nil {
		err = add(r.records, b)
	}
	if err != nil {
		r.err = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte("{}"))
}

// take is what came since it was asked last.
func (r *received) take() (map[string]int, error) {
	r.Lock()
	defer r.Unlock()
	records := r.records
	r.records = map[string]int{}
	return records, r.err
}

// collector lets runner-otel send each run to a Collector, and compares what that gives on.
func (c *check) collector() error {
	file, err := c.built()
	if err != nil {
		return fmt.Errorf("the Collector %s cannot be had: %w", builderVersion, err)
	}
	sink := &received{records: map[string]int{}}
	server := httptest.NewServer(sink)
	defer server.Close()
	endpoint, stop, err := c.start(file, server.URL)
	if err != nil {
		return err
	}
	defer stop()
	total := 0
	for _, archive := range c.archives {
		traces, logs := c.file("traces.jsonl"), c.file("logs.jsonl")
		if _, err := c.tool("runner-otel", "--force", "--retry-for", "1ms", "--traces", traces, "--logs", logs, "--endpoint", endpoint, archive); err != nil {
			return err
		}
		sent := map[string]int{}
		for _, name := range []string{traces, logs} {
			if err := addLines(sent, name); err != nil {
				return err
			}
		}
		got, err := sink.take()
		if err != nil {
			return err
		}
		for _, text := range slices.Sorted(maps.Keys(sent)) {
			if sent[text] != got[text] {
				return fmt.Errorf("%s: sent %d times, the Collector gave it on %d times: %s", archive, sent[text], got[text], text)
			}
			total += sent[text]
		}
		if len(got) != len(sent) {
			return fmt.Errorf("%s: %d different records sent, %d given on", archive, len(sent), len(got))
		}
	}
	fmt.Printf("interop: the Collector %s takes and gives on all %d spans and log records of %d runs as they are\n", builderVersion, total, len(c.archives))
	return nil
}

// start runs the Collector until stop is called. It refuses a record when who takes it next does.
func (c *check) start(file, next string) (endpoint string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	at := l.Addr().String()
	l.Close()
	config := fmt.Sprintf(`receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, encoding: json, compression: none, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}, logs: {receivers: [otlp], exporters: [otlp_http]}}
`, at, next)
	if err := os.WriteFile(c.file("collector.yaml"), []byte(config), 0o600); err != nil {
		return "", nil, err
	}
	var words bytes.Buffer
	p := exec.Command(file, "--config", "file:"+c.file("collector.yaml"))
	p.Stderr = &words
	if err := p.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { p.Process.Kill(); p.Wait() }
	for range 300 {
		if d, err := net.Dial("tcp", at); err == nil {
			d.Close()
			return "http://" + at, stop, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("the Collector does not listen at %s:\n%s", at, words.String())
}

// addLines adds the records of a file of requests.
func addLines(to map[string]int, name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		if err := add(to, s.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return s.Err()
}

// add adds the records of a request, each as one text with its resource and scope.
func add(to map[string]int, request []byte) error {
	type scope struct {
		Scope             map[string]any
		SchemaURL         string
		Spans, LogRecords []map[string]any
	}
	type group struct {
		Resource              any
		ScopeSpans, ScopeLogs []scope
	}
	var q struct{ ResourceSpans, ResourceLogs []group }
	if err := json.Unmarshal(request, &q); err != nil {
		return err
	}
	for _, g := range append(q.ResourceSpans, q.ResourceLogs...) {
		for _, s := range append(g.ScopeSpans, g.ScopeLogs...) {
			for _, record := range append(s.Spans, s.LogRecords...) {
				b, err := json.Marshal(plain([]any{g.Resource, s.Scope, s.SchemaURL, record}))
				if err != nil {
					return err
				}
				to[string(b)]++
			}
		}
	}
	return nil
}

// plain leaves out what says nothing: protobuf gives on no value that is the default one.
func plain(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range x {
			switch e := plain(e).(type) {
			case nil:
			case map[string]any:
				if len(e) > 0 || slices.Contains([]string{"value", "arrayValue", "kvlistValue"}, key) {
					out[key] = e
				}
			case []any:
				if len(e) > 0 {
					out[key] = e
				}
			case string:
				if e != "" && (e != "0" || key == "intValue" || key == "stringValue") || key == "stringValue" {
					out[key] = e
				}
			case float64:
				if e != 0 {
					out[key] = e
				}
			default:
				out[key] = e
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range x {
			out = append(out, plain(e))
		}
		return out
	}
	return v
}
