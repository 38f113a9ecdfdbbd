package rego

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// yamlMarshal writes a value as YAML, with an indent of two spaces.
func yamlMarshal(_ *call, a []any) (any, error) {
	b, err := marshalled(a[0])
	if err != nil {
		return nil, err
	}
	var v any
	if err := yaml.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := yaml.NewEncoder(&out)
	w.SetIndent(2)
	if err := w.Encode(v); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.String(), err
}

// yaml reads the first document of a text; the others must be YAML too. Times are strings, and of a key
// that is there twice the last one counts.
func (c *call) yaml(s string) (any, error) {
	var first *yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader([]byte(s))); ; {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if first == nil {
			first = &n
		}
	}
	if first == nil {
		return nil, nil
	}
	if err := c.settle(first, map[*yaml.Node]bool{}); err != nil {
		return nil, err
	}
	var v any
	if err := first.Decode(&v); err != nil {
		return nil, err
	}
	v, err := jsonKeys(v)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(b) > c.room() {
		return nil, c.tooMuch("the value has more than %d bytes", c.room())
	}
	return parseJSON(string(b))
}

// settle makes strings of times, and leaves the last of equal keys.
func (c *call) settle(n *yaml.Node, seen map[*yaml.Node]bool) error {
	if n == nil || seen[n] {
		return nil
	}
	seen[n] = true
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!timestamp" && n.Style == 0:
		n.Tag = "!!str"
	case n.Kind == yaml.MappingNode:
		if err := c.lastKeys(n); err != nil {
			return err
		}
	}
	for _, child := range append([]*yaml.Node{n.Alias}, n.Content...) {
		if err := c.settle(child, seen); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) lastKeys(n *yaml.Node) error {
	at := map[string]int{}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode {
			var key any
			name, is := "<<", true
			if k.Tag != "!!merge" {
				err := k.Decode(&key)
				name, is = keyText(key)
				is = is && err == nil
			} else if _, twice := at[name]; twice {
				return c.tooMuch("a mapping in YAML has << twice")
			}
			if before, twice := at[name]; is && twice && k.Tag != "!!merge" {
				kept[before+1] = v
				continue
			}
			if is {
				at[name] = len(kept)
			}
		}
		kept = append(kept, k, v)
	}
	n.Content = kept
	return nil
}

// jsonKeys makes keys strings, as JSON has them.
func jsonKeys(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case []any:
		for i := range v {
			if v[i], err = jsonKeys(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = jsonKeys(v[k]); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		all := make(map[string]any, len(v))
		for k := range v {
			name, is := keyText(k)
			if !is {
				return nil, fmt.Errorf("a key of type %T", k)
			}
			if all[name], err = jsonKeys(v[k]); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return v, nil
}

// keyText is a key of YAML as text.
func keyText(k any) (string, bool) {
	switch k := k.(type) {
	case string:
		return k, true
	case int, int64, uint64, bool:
		return fmt.Sprint(k), true
	case float64:
		s := strconv.FormatFloat(k, 'g', -1, 32)
		if special, is := map[string]string{"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}[s]; is {
			s = special
		}
		return s, true
	}
	return "", false
}
