"""The arrows between the rooms: who may include and link whom."""

import re

from sources import Report, code, files, line_of, ROOT

# Each room, and the rooms below that it may see.  Programs see no program.
ROOMS = {
    "base": set(),
    "core": {"base"},
    "pg": {"base"},
    "http": {"base", "core"},
    "store": {"base", "core", "pg"},
    "ingest": {"base", "core", "http", "pg", "store"},
    "dispatch": {"base", "core", "http", "pg", "store"},
    "cli": {"base", "core", "pg", "store"},
    "receiver": {"base", "http", "pg"},
}
ALL = set(ROOMS)

# A foreign library: its headers, its targets, and the rooms that may see it.
LIBRARIES = (
    ("libpq", r"(libpq|postgres_ext|pg_config)", r"PQ|POSTGRES\w*", {"pg"}),
    ("libcurl", r"curl/", r"CURL\w*", {"http"}),
    ("c-ares", r"ares(_\w+)?\.h", r"C?ARES", {"http"}),
    ("http-parser", r"http_parser\.h", r"HTTP_?PARSER\w*", {"http"}),
    ("evhttp", r"ev(ent2/)?http", r"^$", {"http"}),
    ("libevent", r"(event2/|event\.h|evutil)", r"EVENT\w*", ALL - {"base", "core"}),
    ("json-c", r"json(-c)?/|json\.h", r"JSONC?\w*", ALL - {"base", "pg", "http"}),
    ("OpenSSL", r"openssl/", r"SSL|CRYPTO|OPENSSL", ALL - {"base", "pg"}),
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
LINK = re.compile(r"target_link_libraries\(\s*(\w+)([^)]*)\)")


def check_ours(report, path, line, room, name):
    other = name.split("/")[0]
    # Without a folder it is the room's own, perhaps generated.
    if "/" in name and other != room and other not in ROOMS[room]:
        report.add(path, line, f"{room} may not see {other}")


def check_foreign(report, path, line, room, name):
    for library, headers, _, rooms in LIBRARIES:
        if re.match(headers, name):
            if room not in rooms:
                report.add(path, line, f"{room} may not see {library}")
            return


def check_includes(report, path, room):
    text = code(path.read_text(), keep_strings=True)
    for match in INCLUDE.finditer(text):
        check = check_ours if match[1] == '"' else check_foreign
        check(report, path, line_of(text, match.start()), room, match[2])


def check_link(report, path, line, room, target):
    if target in ROOMS and target != room and target not in ROOMS[room]:
        report.add(path, line, f"{room} may not link {target}")
    if not target.startswith("PkgConfig::"):
        return
    for library, _, targets, rooms in LIBRARIES:
        if re.fullmatch(targets, target.removeprefix("PkgConfig::")):
            if room not in rooms:
                report.add(path, line, f"{room} may not link {library}")
            return


def check_links(report, path):
    text = re.sub(r"#[^\n]*", "", path.read_text())
    for match in LINK.finditer(text):
        if match[1] in ROOMS:
            for target in match[2].split():
                check_link(report, path, line_of(text, match.start()), match[1], target)


def main():
    report = Report("The arrows are in tests/static/layers.py: move the code to the room"
                    " that may see what it needs, or pass it in.")
    for path in files("src/*/**/*.[ch]", "include/*/**/*.h"):
        room = path.relative_to(ROOT).parts[1]
        if room in ROOMS:
            check_includes(report, path, room)
        elif path.suffix == ".c":
            report.add(path, 1, f"{room} is no room that the check knows")
    for path in files("src/**/CMakeLists.txt"):
        check_links(report, path)
    report.finish()


main()
