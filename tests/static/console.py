"""What the console's files may do: no markup from text, no other origin, no memory of keys."""

import re

from sources import ROOT, Report, files, line_of

LINE = 100
FOLDER = "src/console"

# A pattern, and what to do instead.
BANNED = (
    (r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|srcdoc\s*=|createContextualFragment",
     "text is a text node: use h() of dom.js"),
    (r"document\s*\.\s*write|DOMParser|parseFromString|XSLTProcessor",
     "text is a text node: use h() of dom.js"),
    (r"\beval\s*\(|new\s+Function\b|set(?:Timeout|Interval)\s*\(\s*['\"`]|javascript:",
     "text is no code"),
    (r"setAttribute\s*\(\s*['\"`](?:on|style|href|src)",
     "h() of dom.js sets what an element has, and knows what it may"),
    (r"localStorage|indexedDB|document\s*\.\s*cookie|caches\s*\.",
     "the key is in sessionStorage, and nothing else is kept"),
    (r"XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|new\s+Worker",
     "requests are made by api.js"),
    (r"window\s*\.\s*open|location\s*\.\s*(?:assign|replace)|location\s*=|location\s*\.\s*href\s*=",
     "the console leads nowhere else: use go() of router.js"),
)
OTHER_ORIGIN = re.compile(r"(?:https?:|['\"`(]\s*)//[a-z0-9]", re.IGNORECASE)
NAMESPACE = "http://www.w3.org/2000/svg"
IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]""")
MODULE = re.compile(r"'(\./\w+\.js)'")
INLINE = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|<iframe|<object|<embed|<base",
                    re.IGNORECASE)
TAKES_KEY = {"session.js"}
ASKS = {"api.js"}


def check_script(report, path, text, listed):
    for pattern, instead in BANNED:
        for match in re.finditer(pattern, text):
            report.add(path, line_of(text, match.start()), f"{match[0]}: {instead}")
    for word, places in (("sessionStorage.", TAKES_KEY), ("fetch(", ASKS)):
        if word in text and path.name not in places:
            report.add(path, 1, f"{word} is for {', '.join(places)} alone")
    for match in IMPORT.finditer(text):
        name = match[1].removeprefix("./")
        if not match[1].startswith("./") or name not in listed:
            report.add(path, line_of(text, match.start()), f"{match[1]} is no module of ours")
    if path.name == "router.js":
        for match in MODULE.finditer(text):
            if match[1].removeprefix("./") not in listed:
                report.add(path, line_of(text, match.start()), f"{match[1]} is no module of ours")


def main():
    report = Report("src/README.md, \"Console\", says why.")
    cmake = (ROOT / "src/ingest/CMakeLists.txt").read_text()
    listed = re.search(r"set\(console\n(.*?)\)", cmake, re.DOTALL)[1].split()
    found = files(f"{FOLDER}/*")
    for path in found:
        text = path.read_text()
        if path.name not in listed:
            report.add(path, 1, "it is not listed in src/ingest/CMakeLists.txt, so nobody gets it")
        for number, line in enumerate(text.splitlines(), 1):
            if path.suffix != ".css" and len(line.expandtabs(4)) > LINE:
                report.add(path, number, f"longer than {LINE} columns")
        for match in OTHER_ORIGIN.finditer(text.replace(NAMESPACE, " " * len(NAMESPACE))):
            report.add(path, line_of(text, match.start()), "another origin")
        if path.suffix == ".js":
            check_script(report, path, text, listed)
        elif path.suffix == ".html":
            for match in INLINE.finditer(text):
                report.add(path, line_of(text, match.start()),
                           f"{match[0].strip()}: the policy lets nothing inline run")
    for name in set(listed) - {path.name for path in found}:
        report.add(ROOT / FOLDER / name, 1, "is listed, and is not there")
    report.finish()


main()
