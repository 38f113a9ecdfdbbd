"""What a check found, and the exit code that follows."""

EXIT_OK, EXIT_NO, EXIT_NOT_WHOLE = 0, 1, 3


class Findings:
    """What was found, one entry a fault: rule, member, line, message."""

    def __init__(self, whole_only=False):
        self.list, self.whole_only = [], whole_only

    def add(self, rule, message, member="", line=0):
        self.list.append((rule, member, line, message))

    def rules(self):
        return sorted({f[0] for f in self.list})

    def exit_code(self):
        """3 for what is not whole, which every refused stream is; 1 for other findings."""
        if not self.list:
            return EXIT_OK
        if self.whole_only or any(f[0] == "archive.container" for f in self.list):
            return EXIT_NOT_WHOLE
        return EXIT_NO
