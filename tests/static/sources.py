"""What the checks share: which files are ours, how to read C, how to complain."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def files(*patterns):
    """Our files, sorted; a pattern is as `src/**/*.c`."""
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern)
                  if path.is_file())


def c_files():
    return files("src/**/*.[ch]", "include/**/*.h", "tests/**/*.[ch]")


def _blank(match, keep_strings):
    text = match[0]
    if keep_strings and text[0] in "\"'":
        return text
    return re.sub(r"[^\n]", " ", text)


def code(text, keep_strings=False):
    """C with comments, and unless asked literals, blanked; lines stay lines."""
    return TOKEN.sub(lambda match: _blank(match, keep_strings), text)


def literals(text):
    """(line, content) of each string literal, neighbours joined as C does."""
    text = code(text, keep_strings=True)
    joined = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
    for match in joined.finditer(text):
        yield line_of(text, match.start()), re.sub(r'"\s*"', "", match[0])[1:-1]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Report:
    """Collects what is wrong; the check ends with finish()."""

    def __init__(self, remedy):
        self.remedy = remedy
        self.count = 0

    def add(self, path, line, what):
        path = Path(path)
        if path.is_absolute() and path.is_relative_to(ROOT):
            path = path.relative_to(ROOT)
        print(f"{path}:{line}: {what}")
        self.count += 1

    def finish(self):
        if self.count:
            print(f"{self.count} to mend. {self.remedy}")
        sys.exit(1 if self.count else 0)
