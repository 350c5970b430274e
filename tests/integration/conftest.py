"""What every test of the whole system is given."""

import collections
import secrets
import subprocess

import pytest

from .daemons import Cli, Dispatch, Ingest, Receiver
from .described import DescribedApi
from .endpoint import Endpoint
from .postgres import Cluster
from .replaying import Queue

programs_key = pytest.StashKey()
answers_seen = collections.Counter()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Show the programs' logs, of the test that failed only."""
    report = (yield).get_result()
    if report.failed:
        for program in item.stash.get(programs_key, []):
            report.sections.append((f"log of {program.name}", program.log()))


@pytest.fixture(scope="session")
def cluster():
    with Cluster() as server:
        yield server


@pytest.fixture(scope="session")
def secret_key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "secret.key"
    path.write_text(secrets.token_hex(32) + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="session")
def template(cluster):
    """The name of a migrated database, which every test gets a copy of."""
    database = cluster.create()
    database.close()
    Cli({})("migrate", f"--database={database.conninfo}")
    return database.name


@pytest.fixture
def db(cluster, template):
    """A migrated database of the test's own."""
    database = cluster.create(template)
    yield database
    database.drop()


@pytest.fixture
def other(db, cluster):
    """A second connection, with a transaction of its own."""
    with cluster.connect(db.name) as connection:
        connection.autocommit = False
        yield connection
        connection.rollback()


@pytest.fixture
def queue(db):
    """A subscription with a queue that is stepped by hand, and sound at the end."""
    made = Queue(db)
    yield made
    made.check()


@pytest.fixture
def empty_db(cluster):
    """A database without a schema."""
    database = cluster.create()
    yield database
    database.drop()


@pytest.fixture
def settings(db, secret_key_file):
    """The settings that all programs share; a test may add to them."""
    return {"database": db.conninfo, "secret_key_file": secret_key_file}


@pytest.fixture
def cli(settings):
    return Cli(settings)


@pytest.fixture
def programs(request, tmp_path, db, empty_db):
    """Make a program of a class; it is stopped, and must end well, after the test.

    It asks for the databases so that they outlive the programs.
    """
    made = request.node.stash.setdefault(programs_key, [])

    def make(cls, settings, start=True, extra=None):
        program = cls(tmp_path, settings, extra)
        made.append(program)
        return program.start() if start else program

    yield make
    failures = []
    for program in reversed(made):
        try:
            program.stop()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


@pytest.fixture
def make_ingest(programs, settings):
    def make(start=True, extra=None, **own):
        return programs(Ingest, {**settings, **own}, start, extra)
    return make


@pytest.fixture
def make_dispatch(programs, settings):
    def make(start=True, extra=None, **own):
        return programs(Dispatch, {**settings, **own}, start, extra)
    return make


@pytest.fixture
def ingest(make_ingest):
    return make_ingest()


@pytest.fixture
def dispatch(make_dispatch):
    return make_dispatch()


@pytest.fixture
def receiver(programs, empty_db):
    """The fault-injecting receiver, with a database for its receipts."""
    return programs(Receiver, {"database": empty_db.conninfo})


@pytest.fixture
def make_endpoint():
    made = []

    def make():
        made.append(Endpoint())
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.close()


@pytest.fixture
def endpoint(make_endpoint):
    return make_endpoint()


@pytest.fixture
def client_certificate(tmp_path):
    """A client certificate and its key, in PEM."""
    key, certificate = tmp_path / "client.key", tmp_path / "client.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/CN=postrider", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate.read_text(), key.read_text()


@pytest.fixture
def tenant(cli):
    """The name of a tenant."""
    cli.json("tenant", "create", "acme")
    return "acme"


@pytest.fixture
def admin_key(cli, tenant):
    return cli.json("key", "create", "--tenant", tenant, "--role", "admin")["key"]


@pytest.fixture
def api(ingest, admin_key):
    """Ingest's API, as the tenant's admin; answers have to be as they are described."""
    return DescribedApi(ingest.api(admin_key), answers_seen)
