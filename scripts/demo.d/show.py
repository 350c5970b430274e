"""What the demo prints, for a person to read."""

import sys
import time

WIDTH = 78


def title(text):
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def say(text):
    print(text, flush=True)


class Progress:
    """One line that changes in place; away from a terminal, its last state only."""

    def __init__(self):
        self.is_live = sys.stdout.isatty()
        self.text = ""
        self.began = time.monotonic()

    def show(self, text):
        if self.is_live and text != self.text:
            print(f"\r  {text:<{WIDTH}}"[:WIDTH], end="", flush=True)
        self.text = text

    def done(self):
        self.text += f", in {time.monotonic() - self.began:.1f} s"
        if self.is_live:
            print("\r", end="")
        print(f"  {self.text:<{WIDTH - 2}}".rstrip(), flush=True)


def table(names, rows):
    """Rows under their names; numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name)
              for i, name in enumerate(names)]
    right = [all(isinstance(row[i], int) for row in rows) for i in range(len(names))]

    def line(texts):
        padded = (text.rjust(width) if is_right else text.ljust(width)
                  for text, width, is_right in zip(texts, widths, right))
        return "  " + "  ".join(padded).rstrip()

    print(line(names))
    for row in cells:
        print(line(row))
    sys.stdout.flush()


class Figures:
    """What was found beside what must be; all are printed, right or wrong."""

    def __init__(self):
        self.rows = []
        self.wrong = 0

    def check(self, what, found, expected):
        is_right = found == expected
        self.wrong += not is_right
        self.rows.append((what, found, expected, "ok" if is_right else "WRONG"))

    def show(self):
        table(("figure", "found", "must be", ""), self.rows)
        self.rows = []
