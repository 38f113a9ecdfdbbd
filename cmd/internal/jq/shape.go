package jq

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Shape is what is known of a JSON value before it is there. Of a nil shape nothing is known, so that it
// can have any keys.
type Shape struct {
	Place string            // what a program writes to get there, for messages; "" is the input
	Keys  map[string]*Shape `json:",omitempty"` // all keys that the object can have; nil if it is none, or can have any
	Each  *Shape            `json:",omitempty"` // what the elements of the array are, or the values of the object that can have any keys
	Array bool              `json:",omitempty"`
}

// Object is an object with these keys and no others.
func Object(keys map[string]*Shape) *Shape {
	s := &Shape{Keys: keys}
	s.named("")
	return s
}

// Flat is an object with these keys and no others, of whose values nothing is known.
func Flat(keys []string) *Shape {
	s := Object(map[string]*Shape{})
	for _, key := range keys {
		s.Keys[key] = nil
	}
	return s
}

// List is an array.
func List(of *Shape) *Shape { return &Shape{Array: true, Each: of} }

// OfForm is the shape that a JSON Schema of the contract describes.
func OfForm(f schemas.Form) *Shape {
	var s schema
	if err := json.Unmarshal(f.JSONSchema(), &s); err != nil {
		panic("jq: " + f.File + ": " + err.Error()) // the file is embedded
	}
	of := s.shape()
	of.named("")
	return of
}

// schema is the part of a JSON Schema that says which keys there are.
type schema struct {
	Properties map[string]*schema `json:"properties"`
	Additional json.RawMessage    `json:"additionalProperties"`
	Items      *schema            `json:"items"`
}

// UnmarshalJSON reads a schema. One that is only true or false says nothing about keys.
func (s *schema) UnmarshalJSON(b []byte) error {
	type plain schema
	if b[0] != '{' {
		return nil
	}
	return json.Unmarshal(b, (*plain)(s))
}

func (s *schema) shape() *Shape {
	switch {
	case s == nil:
	case s.Items != nil:
		return List(s.Items.shape())
	case string(s.Additional) == "false":
		o := &Shape{Keys: map[string]*Shape{}}
		for key, of := range s.Properties {
			o.Keys[key] = of.shape()
		}
		return o
	case len(s.Additional) > 0 && len(s.Properties) == 0:
		var each schema
		if json.Unmarshal(s.Additional, &each) == nil {
			return &Shape{Each: each.shape()}
		}
	}
	return nil
}

// OfType is the shape of a Go value as encoding/json writes it, to be put into an object.
func OfType(t reflect.Type) *Shape {
	for _, own := range [...]string{"MarshalJSON", "MarshalJSONTo", "MarshalText"} {
		if _, has := reflect.PointerTo(t).MethodByName(own); has {
			return nil // it has a form of its own
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return OfType(t.Elem())
	case reflect.Slice:
		return List(OfType(t.Elem()))
	case reflect.Map:
		return &Shape{Each: OfType(t.Elem())}
	case reflect.Struct:
		o := &Shape{Keys: map[string]*Shape{}}
		for i := range t.NumField() {
			if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
				o.Keys[key] = OfType(t.Field(i).Type)
			}
		}
		return o
	}
	return nil
}

// clone is a copy, whose places are set apart.
func (s *Shape) clone() *Shape {
	if s == nil {
		return nil
	}
	c := &Shape{Array: s.Array, Each: s.Each.clone()}
	if s.Keys != nil {
		c.Keys = map[string]*Shape{}
	}
	for key, of := range s.Keys {
		c.Keys[key] = of.clone()
	}
	return c
}

// Common is an object with the keys that all of these objects have. Of no objects nothing is known.
func Common(list ...*Shape) *Shape {
	if len(list) == 0 {
		return nil
	}
	keys := list[0].clone().Keys
	for _, s := range list {
		maps.DeleteFunc(keys, func(key string, of *Shape) bool {
			if !reflect.DeepEqual(of, s.Keys[key]) {
				keys[key] = nil
			}
			return s.lacks(key)
		})
	}
	return Object(keys)
}

// named sets the places of a shape and of what is in it.
func (s *Shape) named(place string) {
	if s == nil {
		return
	}
	s.Place = place
	for key, of := range s.Keys {
		of.named(place + dot(key))
	}
	s.Each.named(place + "[]")
}

// lacks reports whether an object of this shape never has the key.
func (s *Shape) lacks(key string) bool {
	if s == nil || s.Keys == nil {
		return false
	}
	_, has := s.Keys[key]
	return !has
}

func (s *Shape) sorted() []string { return slices.Sorted(maps.Keys(s.Keys)) }

// within calls f for the shape and each in it.
func (s *Shape) within(f func(*Shape)) {
	if s == nil {
		return
	}
	f(s)
	for _, key := range s.sorted() {
		s.Keys[key].within(f)
	}
	s.Each.within(f)
}

// objects calls f for each object with known keys that a value of this shape has in it.
func (s *Shape) objects(v any, f func(map[string]any, *Shape)) {
	if s == nil {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s.Each.objects(e, f)
		}
	case map[string]any:
		for key, e := range v {
			of := s.Each
			if s.Keys != nil {
				of = s.Keys[key]
			}
			of.objects(e, f)
		}
		if s.Keys != nil {
			f(v, s)
		}
	}
}
