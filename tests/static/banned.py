"""Calls, names and words that this project does without."""

import re

from sources import Report, c_files, code, files, line_of

CALLS = {
    "gets": "fgets()",
    "strcpy": "memcpy() with a length, or snprintf()",
    "strcat": "struct buf, or snprintf()",
    "sprintf": "snprintf()",
    "vsprintf": "vsnprintf()",
    "strtok": "strchr() or strcspn()",
    "atoi": "strtoll(), with its end and errno checked",
    "atol": "strtoll(), with its end and errno checked",
    "system": "a library, or posix_spawn()",
    "popen": "a library, or posix_spawn()",
    "rand": "RAND_bytes()",
    "srand": "RAND_bytes()",
    "random": "RAND_bytes()",
    "sleep": "a timer on the loop",
    "usleep": "a timer on the loop",
    "nanosleep": "a timer on the loop",
    "alloca": "malloc()",
    "tmpnam": "mkstemp()",
    "mktemp": "mkstemp()",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(CALLS) + r")\s*\(")

# What the libraries that we link export begins so.
FOREIGN = re.compile(
    r"^(event|evhttp|evbuffer|bufferevent|evutil|evdns|ares|curl|PQ\w*"
    r"|json_object|json_tokener|json_util|json_c|json_pointer|json_patch)_\w*\(", re.MULTILINE)

# Spelled so that this file does not find itself.
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


def check_code(report, path):
    text = code(path.read_text())
    for match in CALL.finditer(text):
        report.add(path, line_of(text, match.start()),
                   f"{match[1]}() is banned: use {CALLS[match[1]]}")
    for match in FOREIGN.finditer(text):
        report.add(path, line_of(text, match.start()),
                   f"{match[0]}) looks like a library's: give it another name")


def check_words(report, path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if LATER.search(line):
            report.add(path, number, "work left for later: do it, or file an issue")


def check_sleeps(report, path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if "time.sleep(" in line:
            report.add(path, number, "a blind sleep: wait with until() or never(), be slow with"
                       " dawdle(), all of wait.py")


def main():
    report = Report("The list is in tests/static/banned.py.")
    for path in c_files():
        check_code(report, path)
    for path in files("src/**/*", "include/**/*", "sql/**/*", "migrations/*", "scripts/**/*",
                      "docker/**/*", "tests/**/*.*", "CMakeLists.txt", "*.md"):
        if path.suffix not in (".pyc", ".png") and "corpus" not in path.parts:
            check_words(report, path)
    for path in files("tests/**/*.py"):
        if path.name not in ("wait.py", "banned.py"):
            check_sleeps(report, path)
    report.finish()


main()
