"""Which opens are noise, as DERIVATION.md says under "Noise", and the table of rules."""

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cmd/internal/noise")
REFUSED = (-1, -13, -18, -30, -38, -40)
CHANGING = 0o100 | 0o1000 | 0o2000 | 0o20000000
DOUBTFUL = {"user_fault", "path_fault", "path_truncated", "detached", "disconnected", "deleted", "fd_race", "changed", "unproven"}


def _table(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                verdict, rule, _, form, pattern, _ = line.split(None, 5)
                yield verdict, rule, form, pattern


RULES = list(_table("noise.txt"))
PACKAGES = [pattern for _, _, _, pattern in _table("packages.txt")]  # the table loader keeps what holds one of these


def leaves_out(e, value, lexical):
    """The id of the rule that leaves an open out, or None."""
    if stays(e, value, lexical):
        return None
    for verdict, rule, form, pattern in RULES:
        if matches(form, pattern, value, e["pid"]):
            return rule if verdict == "drop" else None
    return None


def stays(e, value, lexical):
    """Whether an open is evidence, whatever its path is."""
    if "ret" not in e or "flags" not in e or e["ret"] in REFUSED:
        return True
    if e["op"] == "creat" or e["flags"] & 3 or e["flags"] & CHANGING:
        return True
    marks = set(e.get("marks", ()))
    if marks & DOUBTFUL or e.get("file_type") == "blk" or not value or value[0] != "/":
        return True
    return lexical and (e["ret"] >= 0 or "user_truncated" in marks or ".." in value.split("/"))


def matches(form, pattern, value, pid):
    if form == "exact":
        return value == pattern
    if form == "prefix":
        return value.startswith(pattern)
    if form == "contains" or form == "library":
        library = value.endswith(".so") or ".so." in value
        return (library or form == "contains") and all(part in value for part in pattern.split("&"))
    return _other_process(pattern.split(","), value, pid)


def _other_process(names, value, pid):
    parts = value.split("/")
    if parts[:2] != ["", "proc"] or len(parts) < 4 or not _number(parts[2]) or int(parts[2]) == pid:
        return False
    parts = parts[3:]
    if parts[0] == "task" and len(parts) > 1:
        if len(parts) < 3 or not _number(parts[1]):
            return False
        parts = parts[2:]
    return parts[0] in names


def _number(text):
    return text.isascii() and text.isdigit()
