"""Statements live in sql/, say what they do, and are not built in C."""

import re

from sources import Report, files, line_of, literals, ROOT

# SQL as it would stand in a literal: words that prose and HTTP do not use so.
STATEMENT = re.compile(
    r"\bSELECT\s|\bINSERT\s+INTO\b|\bUPDATE\s+\S+\s+SET\b|\bDELETE\s+FROM\b"
    r"|\bWHERE\s|\bRETURNING\b|\bORDER\s+BY\b"
    r"|\b(CREATE|ALTER|DROP)\s+(TABLE|INDEX|ROLE|SCHEMA|VIEW|FUNCTION|DATABASE|TYPE)\b"
    r"|^\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|LISTEN|UNLISTEN|NOTIFY|TRUNCATE|SET\s+ROLE)\b"
    r"[^a-z]*;?$"
    r"|^\s*(?i:select\s.+|insert\s+into\s.+|update\s+\S+\s+set\s.+|delete\s+from\s.+"
    r"|listen\s+\w+|notify\s+\w+|set\s+(role|local|session)\s.+)$")


def parameters(text):
    """Used $n, less what quotes and comments hold."""
    bare = re.sub(r"--[^\n]*|/\*.*?\*/|'(?:''|[^'])*'", " ", text, flags=re.DOTALL)
    return {int(n) for n in re.findall(r"(?<![\w$])\$(\d+)", bare)}


def check_statement(report, path):
    text = path.read_text()
    if not re.match(rf"-- {path.stem}: \S", text):
        report.add(path, 1, f"begins not with `-- {path.stem}: what it does`")
    documented = {}
    for match in re.finditer(r"^--\s+\$(\d+)\s+[a-z]\S*.*[ \t]\S", text, re.MULTILINE):
        documented[int(match[1])] = line_of(text, match.start())
    used = parameters(text)
    for n in sorted(used - documented.keys()):
        report.add(path, 1, f"${n} is not described: add `--   ${n} type  meaning`")
    for n in sorted(documented.keys() - used):
        report.add(path, documented[n], f"${n} is described but not used")
    if used and max(used) != len(used):
        report.add(path, 1, "parameters are not numbered from $1 without a gap")


def check_embedded(report, path, lists):
    if not re.search(rf"\b{re.escape(path.stem)}\b", lists):
        report.add(path, 1, "is in no CMakeLists.txt: embed it or remove it")


def check_migrations(report):
    for number, path in enumerate(files("migrations/*.sql"), 1):
        if not re.fullmatch(rf"{number:04}_[a-z0-9_]+\.sql", path.name):
            report.add(path, 1, f"is not {number:04}_name.sql, the next in order")


def check_literals(report, path):
    for line, text in literals(path.read_text()):
        if STATEMENT.search(text):
            report.add(path, line, f'SQL in C: "{text[:40]}": move it to sql/NAME.sql')


def main():
    report = Report("How a statement is written: see any file of sql/.")
    lists = "\n".join(p.read_text() for p in files("CMakeLists.txt", "src/**/CMakeLists.txt"))
    for path in files("sql/**/*.sql"):
        check_statement(report, path)
        check_embedded(report, path, lists)
    check_migrations(report)
    for path in files("src/**/*.[ch]", "include/**/*.h"):
        if path.relative_to(ROOT).parts[1] != "pg":
            check_literals(report, path)
    report.finish()


main()
