package schemas

import "reflect"

// To make the encoder or the decoder of a type takes the library much longer than to use it. These two have that done while a tool has
// nothing else to do, such as wait for its input. They change nothing but when it is done, and are safe beside other calls.

// PrepareMarshal prepares Marshal of values of these types.
func PrepareMarshal(values ...any) {
	for _, v := range values {
		Marshal(v) // of which only the encoder is wanted: an empty value need not be valid
	}
}

// PrepareUnmarshal prepares Unmarshal into values of these types.
func PrepareUnmarshal(values ...any) {
	for _, v := range values {
		Unmarshal([]byte("null"), reflect.New(reflect.TypeOf(v)).Interface())
	}
}
