"""Every statement is as its comment says, and finds its rows by an index."""

import re
from pathlib import Path

import pytest

SQL = Path(__file__).parents[2] / "sql"
LISTED = re.search(r"set\(statements\s+(.*?)\)", (
    SQL.parent / "src/store/CMakeLists.txt").read_text(), re.DOTALL)[1].split()


def parameters(text):
    """The types in the comment, by number."""
    found = re.findall(r"^--\s+\$(\d+)\s+([a-z]+(?:\[\])?)", text, re.MULTILINE)
    return [type for _, type in sorted((int(n), type) for n, type in found)]


@pytest.fixture(scope="module")
def session(cluster, template):
    """One database for all: nothing is written."""
    database = cluster.create(template)
    yield database
    database.drop()


@pytest.mark.parametrize("name", LISTED)
def test_its_parameters_have_the_types_of_its_comment(session, name):
    text = (SQL / f"{name}.sql").read_text()
    assert text.startswith(f"-- {name}: ")
    session.execute(f"PREPARE {name} AS {text}".encode())
    actual = session.value("SELECT parameter_types::text[] FROM pg_prepared_statements"
                           " WHERE name = %s", (name,))
    assert actual == parameters(text)
