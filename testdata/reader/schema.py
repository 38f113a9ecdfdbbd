"""The subset of JSON Schema that schemas/*.schema.json use.

A schema is compiled once to a function that returns the first fault of a value as text,
or None. An unknown keyword is an error here, so that a schema file which starts to
use more is not silently half checked.
"""

import os
import re

import jsontext

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas")
_IGNORED = {"$schema", "$id", "title", "description", "examples", "then", "else"}
_TYPES = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
_cache, _files = {}, {}


def load(name):
    """The compiled schema of schemas/NAME.schema.json."""
    if name not in _cache:
        with open(os.path.join(ROOT, name + ".schema.json"), "rb") as f:
            whole = jsontext.parse_any(f.read())
        _cache[name] = compile_schema(_inline(whole, whole.get("$defs", {})))
    return _cache[name]


def _inline(s, defs):
    """A schema with what it defines once in each place that refers to it."""
    if isinstance(s, list):
        return [_inline(x, defs) for x in s]
    if not isinstance(s, dict):
        return s
    if isinstance(s.get("$ref"), str):
        s = dict(defs[s["$ref"].rpartition("/")[2]], **{k: v for k, v in s.items() if k != "$ref"})
    return {k: _inline(v, defs) for k, v in s.items() if k != "$defs"}


def _names_in(s):
    """All keys that a schema knows, in any of its variants."""
    found = set(s.get("properties", ()))
    for part in s.get("oneOf", []) + s.get("allOf", []):
        found |= _names_in(part)
    return found


def raw(name):
    """The schema file itself."""
    if name not in _files:
        with open(os.path.join(ROOT, name + ".schema.json"), "rb") as f:
            _files[name] = jsontext.parse_any(f.read())
    return _files[name]


def keys(name):
    """The keys of a schema file's object in the order of the tables, one list a variant."""
    s = raw(name)
    return [list(v["properties"]) for v in s.get("oneOf", [s])]


def in_order(name, value):
    """Whether all objects in a value have their keys in the order of the tables, and those of any keys in the order of bytes."""
    whole = raw(name)
    return _ordered(_inline(whole, whole.get("$defs", {})), value)


def _ordered(s, value):
    if isinstance(value, list):
        return all(_ordered(s.get("items", {}), v) for v in value)
    if not isinstance(value, dict):
        return True
    known = s.get("properties")
    order = list(known) if known else sorted(value, key=str.encode)
    return [k for k in order if k in value] == list(value) and all(_ordered((known or {}).get(k, {}), v) for k, v in value.items())


def same(a, b):
    """Equality as JSON Schema means it: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _only(kind, check):
    return lambda v: check(v) if _TYPES[kind](v) else None


def _type(want):
    tests = [_TYPES[t] for t in (want if isinstance(want, list) else [want])]
    return lambda v: None if any(t(v) for t in tests) else "is not of type %s" % want


def _properties(want):
    parts = {k: compile_schema(s) for k, s in want.items()}

    def check(v):
        for k, part in parts.items():
            if k in v:
                fault = part(v[k])
                if fault:
                    return "%s %s" % (k, fault)
        return None
    return _only("object", check)


def _additional(extra, known):
    part = compile_schema(extra) if isinstance(extra, dict) else None

    def check(v):
        for k in v:
            if k not in known:
                fault = part(v[k]) if part else "is not a known key"
                if fault:
                    return "%s %s" % (k, fault)
        return None
    return _only("object", check)


def _names(want):
    part = compile_schema(want)
    return _only("object", lambda v: next((f for f in map(part, v) if f), None))


def _required(want):
    return _only("object", lambda v: next(("has no key %s" % k for k in want if k not in v), None))


def _dependent(want):
    def check(v):
        for k, need in want.items():
            for n in need:
                if k in v and n not in v:
                    return "has %s without %s" % (k, n)
        return None
    return _only("object", check)


def _items(want):
    part = compile_schema(want)
    return _only("array", lambda v: next((f for f in map(part, v) if f), None))


def _unique(want):
    def check(v):
        seen = {(type(x).__name__, jsontext.canonical(x)) for x in v}
        return "has an element twice" if len(seen) != len(v) else None
    return _only("array", check)


def _pattern(want):
    found = re.compile(want.replace("$", r"\Z"), re.ASCII).search
    return _only("string", lambda v: None if found(v) else "does not match %s" % want)


def _bound(kind, size, ok, word):
    return lambda n: _only(kind, lambda v: None if ok(size(v), n) else "is %s than %d" % (word, n))


def _any_of(want):
    parts = [compile_schema(s) for s in want]
    return lambda v: None if any(p(v) is None for p in parts) else "matches no alternative"


def _one_of(want):
    parts = [compile_schema(s) for s in want]
    return lambda v: None if sum(p(v) is None for p in parts) == 1 else "matches not exactly one alternative"


def _all_of(want):
    parts = [compile_schema(s) for s in want]
    return lambda v: next((f for f in (p(v) for p in parts) if f), None)


def _not(want):
    part = compile_schema(want)
    return lambda v: None if part(v) else "matches what it must not"


def _self(v):
    return v


_KEYWORDS = {
    "type": _type, "properties": _properties, "propertyNames": _names, "required": _required,
    "dependentRequired": _dependent, "items": _items, "uniqueItems": _unique, "pattern": _pattern,
    "anyOf": _any_of, "oneOf": _one_of, "allOf": _all_of, "not": _not,
    "const": lambda want: lambda v: None if same(v, want) else "is not %s" % want,
    "enum": lambda want: lambda v: None if any(same(v, w) for w in want) else "is none of %s" % want,
    "minimum": _bound("integer", _self, lambda v, n: v >= n, "less"),
    "maximum": _bound("integer", _self, lambda v, n: v <= n, "more"),
    "minLength": _bound("string", len, lambda v, n: v >= n, "shorter"),
    "maxLength": _bound("string", len, lambda v, n: v <= n, "longer"),
    "minItems": _bound("array", len, lambda v, n: v >= n, "shorter"),
    "maxProperties": _bound("object", len, lambda v, n: v <= n, "longer"),
    "maxItems": _bound("array", len, lambda v, n: v <= n, "longer"),
}


def compile_schema(s):
    """A function from a value to the first fault of it, or None."""
    if isinstance(s, bool):
        return lambda v: None if s else "is not allowed"
    parts = []
    for word, want in s.items():
        if word in _IGNORED:
            continue
        if word == "additionalProperties":
            if want is not True:
                parts.append(_additional(want, set(s.get("properties", ()))))
        elif word == "unevaluatedProperties":
            parts.append(_additional(want, _names_in(s)))
        elif word == "if":
            parts.append(_conditional(compile_schema(want), compile_schema(s.get("then", True)), compile_schema(s.get("else", True))))
        elif word in _KEYWORDS:
            parts.append(_KEYWORDS[word](want))
        else:
            raise ValueError("schema keyword %s is not known to this reader" % word)
    return lambda v: next((f for f in (p(v) for p in parts) if f), None)


def _conditional(condition, then, otherwise):
    return lambda v: (then if condition(v) is None else otherwise)(v)
