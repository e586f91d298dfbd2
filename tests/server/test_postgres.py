"""A server whose budget is in PostgreSQL, with the password in a file."""

from __future__ import annotations

import pytest
from tests.postgres import own_server
from tests.server.clinic import write_clinic

from tacit import Budget
from tacit.cli.exits import run
from tacit.errors import BadConfiguration, NotCovered
from tacit.server.config import read_config
from tacit.server.problems import found_wrong, problem
from tacit.server.service import Service

SECRET = "s3same"


@pytest.fixture(scope="module")
def server():
    with own_server() as own:
        own.run(f"CREATE ROLE locked SUPERUSER LOGIN PASSWORD '{SECRET}'")
        yield own


@pytest.fixture
def config(server, tmp_path):
    """The server's file; the URL has no password."""
    path = write_clinic(tmp_path)
    url = f"{server.url(user='locked')}#clinic"
    named = f'budget = "{url}"\npassword_file = "secrets/pg"\ntokens = "clinic-tokens"'
    path.write_text(path.read_text().replace('budget = "clinic.budget"', named))
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "pg").write_text(f"{SECRET}\n")
    if not server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'clinic'"):
        Budget.create(f"{server.url()}#clinic", epsilon=10, covers=["visits", "labs"]).close()
    return path


def test_it_is_served(config):
    read = read_config(config)
    assert SECRET not in repr(read)
    service = Service.open(read)
    try:
        assert service.budget.left.epsilon == 10
        assert service.place == service.budget.place
        assert service.place.endswith("#clinic")
        assert SECRET not in service.place
        refused = NotCovered(f"{service.place} covers visits, not 'payroll'")
        assert service.place not in str(problem(found_wrong(refused), service.place))
    finally:
        service.close()


def test_a_token_sets_a_share_aside(config, capsys):
    name = ("token", "add", "ana", "--config", str(config), "--share", "1/4")
    assert run(name) == 0
    told = capsys.readouterr()
    assert "ana has ε = 0.25" in told.err
    assert SECRET not in told.out + told.err


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("secrets/pg", "secrets/none", r"password_file: there is no file"),
        ('tokens = "clinic-tokens"', "", r"tokens is missing"),
    ],
)
def test_a_mistake_is_named(config, right, wrong, said):
    config.write_text(config.read_text().replace(right, wrong))
    with pytest.raises(BadConfiguration, match=said):
        read_config(config)


def test_a_password_is_for_postgresql(tmp_path):
    path = write_clinic(tmp_path)
    (tmp_path / "pg").write_text(SECRET)
    path.write_text(f'password_file = "pg"\n{path.read_text()}')
    with pytest.raises(BadConfiguration, match=r"password_file: it goes with a budget in Postgre"):
        read_config(path)
