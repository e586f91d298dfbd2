"""A server with a certificate, and a client that checks it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.server.clinic import write_clinic
from tests.server.conftest import served

import tacit
from tacit.errors import BadConfiguration, ServerUnavailable
from tacit.server.config import read_config


def write_certificate(folder: Path, name: str) -> None:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "clinic")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def test_a_client_talks_only_to_the_server_whose_certificate_it_trusts(tmp_path, monkeypatch):
    write_certificate(tmp_path, "server")
    listen = 'certificate = "server.pem"\nkey = "server.key"'
    with served(tmp_path, listen=listen) as server:
        assert server.url.startswith("https://")
        with pytest.raises(
            ServerUnavailable, match=r"not trusted here: self-signed.*SSL_CERT_FILE"
        ):
            tacit.connect(server.url, token=server.tokens["ana"])
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
        with tacit.connect(server.url, token=server.tokens["ana"]) as clinic:
            visits = clinic.table("visits")
            assert visits.people == 300
            opening: dict[str, Any] = {"threshold": 100, "at_most": 1, "epsilon": 1}
            stream = visits.sparse(**opening, questions=10, name="s")
            clinic.close()
            monkeypatch.delenv("SSL_CERT_FILE")
            for ask in (  # whatever is asked for, and on whatever connection
                lambda: visits.count("age > 3", epsilon="1/10"),
                lambda: stream.ask_all(["age > 3"]),
            ):
                with pytest.raises(ServerUnavailable, match="not trusted here"):
                    ask()
        with pytest.raises(ServerUnavailable):  # nobody speaks in the open there
            tacit.connect(server.url.replace("https", "http"), token=server.tokens["ana"])


def test_a_key_that_is_not_the_certificates(tmp_path):
    for name in ("server", "other"):
        write_certificate(tmp_path, name)
    pair = 'certificate = "server.pem"\nkey = "other.key"'
    path = write_clinic(tmp_path, listen=pair)
    with pytest.raises(BadConfiguration, match="not a certificate and its key"):
        read_config(path)
