package exchange

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// providers are the interfaces of language models that are known, by the end of their paths.
var providers = []struct{ name, path string }{
	{"openai.chat", "/chat/completions"}, {"openai.responses", "/responses"}, {"openai.completions", "/completions"}, {"openai.embeddings", "/embeddings"},
	{"anthropic.messages", "/messages"}, {"ollama.chat", "/api/chat"}, {"ollama.generate", "/api/generate"},
	{"google.generate", ":generateContent"}, {"google.stream", ":streamGenerateContent"},
}

// Prompt is one call of a model.
type Prompt struct {
	Exchange uint64          `json:"exchange"` // its seq
	Provider string          `json:"provider"`
	Host     string          `json:"host"`
	Decision string          `json:"decision"`
	Model    string          `json:"model,omitempty"`
	Request  json.RawMessage `json:"request"`
	Status   uint16          `json:"status,omitzero"`
	// Response is the answer, and Events are those of an answer that came as a stream of events.
	Response json.RawMessage   `json:"response,omitempty"`
	Events   []json.RawMessage `json:"events,omitempty"`
}

// maxPrompt is the most bytes of a body that is looked into.
const maxPrompt = 64 << 20

// Prompts writes the calls of known interfaces of language models, one a line. Calls whose request is no JSON are none.
func (r *Recording) Prompts(w io.Writer) error {
	for _, e := range r.Exchanges {
		p, err := r.prompt(e)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recording) prompt(e *schemas.NetExchange) (*Prompt, error) {
	p := &Prompt{Exchange: e.Seq, Host: e.Host, Decision: e.Decision, Status: e.Status}
	for _, x := range providers {
		if e.Method == "POST" && p.Provider == "" && strings.HasSuffix(e.Path, x.path) {
			p.Provider = x.name
		}
	}
	if p.Provider == "" {
		return nil, nil
	}
	request, err := r.plain(&e.Request)
	if err != nil {
		return nil, err
	}
	if !json.Valid(request) {
		return nil, nil
	}
	p.Request = request
	var head struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(request, &head) == nil {
		p.Model = head.Model
	}
	if e.Response == nil {
		return p, nil
	}
	answer, err := r.plain(e.Response)
	if err != nil {
		return nil, err
	}
	if json.Valid(answer) {
		p.Response = answer
		return p, nil
	}
	for line := range bytes.Lines(answer) { // events, or one JSON value a line
		line = bytes.TrimSpace(line)
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			line = bytes.TrimSpace(data)
		}
		if len(line) > 0 && line[0] == '{' && json.Valid(line) {
			p.Events = append(p.Events, line)
		}
	}
	return p, nil
}

// plain is a body without the encoding in which it was sent.
func (r *Recording) plain(m *schemas.NetMessage) ([]byte, error) {
	f, err := r.Body(m)
	if err != nil {
		return nil, tool.CannotRead("a body of the record", err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.EqualFold(header(m.Headers, "Content-Encoding"), "gzip") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, nil
		}
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPrompt))
	if err != nil {
		return nil, nil // cut short: not a value
	}
	return b, nil
}
