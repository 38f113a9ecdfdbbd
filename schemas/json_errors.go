package schemas

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	json "github.com/goccy/go-json/v2"

	"github.com/goccy/go-json/jsontext"
)

// jsonError says what is wrong with a JSON text in the words of the specification: by its keys,
// not by the types that this package decodes it into.
func jsonError(err error) error {
	var form *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &form):
		return semantic(form)
	case errors.As(err, &syntax):
		at := place(string(syntax.JSONPointer))
		if strings.HasPrefix(syntax.Err.Error(), "duplicate object member name") {
			return fmt.Errorf("%s is there twice", at)
		}
		return fmt.Errorf("not valid JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	}
	return err
}

func semantic(e *json.SemanticError) error {
	at := place(string(e.JSONPointer))
	if e.Err != nil && strings.HasPrefix(e.Err.Error(), "unknown object member name") {
		return fmt.Errorf("unknown %s", at)
	}
	is, want := kindWords[e.JSONKind], typeWords(e.GoType)
	if is == "" || want == "" {
		return fmt.Errorf("%s has a wrong value", at)
	}
	if e.JSONKind == '0' && len(e.JSONValue) > 0 {
		is = fmt.Sprintf("%.60s", string(e.JSONValue))
	}
	return fmt.Errorf("%s is %s, expected %s", at, is, want)
}

var kindWords = map[jsontext.Kind]string{'n': "null", 't': "true", 'f': "false", '"': "a text", '0': "a number", '{': "an object", '[': "a list"}

func typeWords(t reflect.Type) string {
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeWords(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer from 0 to %d", uint64(math.MaxUint64)>>(64-t.Bits()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return ""
}

// place is a JSON pointer as this package writes places: key a.b[0].
func place(pointer string) string {
	if pointer == "" {
		return "the whole"
	}
	var b strings.Builder
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if _, err := strconv.ParseUint(token, 10, 64); err == nil && b.Len() > 0 {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return fmt.Sprintf("key %.200s", b.String())
}
