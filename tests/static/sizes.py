"""Nothing grows past what a reader can hold."""

from sources import Report, c_files, files

MAX_FUNCTION = 80
MAX_FILE = 600
MAX_TEST = 1000  # tables of cases are long, and easy to read all the same


def check_functions(report, path, lines):
    """A function's body stands between braces in column one."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > MAX_FUNCTION:
                report.add(path, start, f"a function of {number - start - 1} lines"
                                        f" (most: {MAX_FUNCTION}): give its parts names")
            start = None


def main():
    report = Report("Aim for functions of 20 lines and files of 250.")
    sources = set(c_files())
    for path in sorted(sources | set(files("tests/**/*.py", "sql/**/*.sql", "src/console/*"))):
        lines = path.read_text().splitlines()
        most = MAX_TEST if path.name.startswith("test_") else MAX_FILE
        if len(lines) > most:
            report.add(path, 1, f"{len(lines)} lines (most: {most}): split it")
        if path in sources:
            check_functions(report, path, lines)
    report.finish()


main()
