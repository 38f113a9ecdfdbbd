package schemas

import (
	"bytes"
	"fmt"
)

// Begins says why a file cannot be a log of this layer, by its beginning; nil if it can. Blank lines say nothing. A
// line without LF at the end may be one that its writer did not finish, so that only its first byte is looked at if it
// is no JSON. What a line lacks is not judged here: a log can have bad lines.
func (l *Layer) Begins(head []byte) error {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 {
		return nil
	}
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	var keys map[string]any
	switch err := Unmarshal(line, &keys); {
	case err != nil && !whole && line[0] == '{':
		return nil
	case err != nil:
		return fmt.Errorf("its first line is no valid JSON object, expected a line of the %s", l.Log.Title)
	}
	if l.Log.OwnLines {
		if keys["schema"] != l.Schema {
			return fmt.Errorf("the schema of its first line is %s, expected %q", shownKey(keys["schema"]), l.Schema)
		}
		return nil
	}
	if kind, _ := keys["type"].(string); !IsLogType(kind) {
		return fmt.Errorf("the type of its first line is %s, expected one of the %s, such as %q", shownKey(keys["type"]), l.Log.Title, LogDecision)
	}
	return nil
}

func shownKey(v any) string {
	if text, is := v.(string); is {
		return fmt.Sprintf("%.80q", text)
	}
	if v == nil {
		return "absent"
	}
	return "no text"
}
