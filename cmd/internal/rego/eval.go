package rego

import "fmt"

// setData gives the data document to the module.
func (i *instance) setData(text string) (err error) {
	i.data, err = i.value(text, "the data document")
	return err
}

// eval evaluates an entrypoint and gives its value as JSON. An empty input is none.
func (i *instance) eval(entry uint32, input string) (string, error) {
	if !i.has("opa_eval") {
		return i.evalOld(entry, input)
	}
	var at uint32
	var err error
	if input != "" {
		if at, err = i.put(input, "the input"); err != nil {
			return "", err
		}
	}
	heap, err := i.call("opa_heap_ptr_get")
	if err != nil {
		return "", err
	}
	const reserved, asValue = 0, 1
	if at, err = i.call("opa_eval", reserved, entry, i.data, at, uint32(len(input)), heap, asValue); err != nil {
		return "", err
	}
	s, err := i.text(at, "the result")
	if err != nil {
		return "", err
	}
	return decision(s)
}

// evalOld is for modules before ABI 1.2.
func (i *instance) evalOld(entry uint32, input string) (string, error) {
	frame, err := i.call("opa_eval_ctx_new")
	if err != nil {
		return "", err
	}
	type step struct {
		name string
		arg  uint32
	}
	steps := []step{{"opa_eval_ctx_set_data", i.data}, {"opa_eval_ctx_set_entrypoint", entry}}
	if input != "" {
		v, err := i.value(input, "the input")
		if err != nil {
			return "", err
		}
		steps = append(steps, step{"opa_eval_ctx_set_input", v})
	}
	for _, s := range steps {
		if _, err := i.call(s.name, frame, s.arg); err != nil {
			return "", err
		}
	}
	if code, err := i.call("eval", frame); err != nil || code != 0 {
		if err == nil {
			err = faultf("the policy ended with error %d", int32(code))
		}
		return "", err
	}
	v, err := i.call("opa_eval_ctx_get_result", frame)
	if err != nil {
		return "", err
	}
	s, err := i.dumped(v, "the result")
	if err != nil {
		return "", err
	}
	return decision(s)
}

// decision is the value in a result set. OPA writes the one result of an entrypoint as {{"result": VALUE}}.
func decision(s string) (string, error) {
	v, err := parseValue(s)
	if err != nil {
		return "", faultf("the result is no value of Rego: %s", err)
	}
	var results []any
	switch v := v.(type) {
	case set:
		results = v
	case []any:
		results = v
	default:
		return "", faultf("the result is no result set")
	}
	switch len(results) {
	case 0:
		return "", ErrUndefined
	case 1:
	default:
		return "", faultf("the result has %d values, expected one", len(results))
	}
	o, _ := results[0].(object)
	value, is := o.get("result")
	if !is || len(o) != 1 {
		return "", faultf("the result is no result set")
	}
	text, err := toJSON(value)
	if err != nil {
		return "", &Error{Err: fmt.Errorf("the decision cannot be written as JSON: %w", err)}
	}
	return text, nil
}
