"""The link over TLS: a broker is spoken to only if the owner's authority signed it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time

import pytest

from gateway.links.clock import SystemClock
from gateway.links.inbox import Inbox
from gateway.links.mqtt import MqttLink, MqttSettings
from tests.brokers import Mosquitto
from tests.stories import free_port

HANG_GUARD_S = 60


def openssl(*arguments, folder):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    """A certificate authority of our own."""
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.crt"),
        *("-days", "2", "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE"),
        folder=folder,
    )
    return folder / f"{name}.crt"


@pytest.fixture
def tls_broker(tmp_path):
    """A real mosquitto whose certificate for 127.0.0.1 our authority signed: (port, authority)."""
    binary = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
    assert binary, "the tests need Debian's mosquitto: apt-get install mosquitto"
    signer = authority(tmp_path, "home")
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "broker.key", "-out", "broker.csr", "-subj", "/CN=broker"),
        folder=tmp_path,
    )
    openssl(
        *("x509", "-req", "-in", "broker.csr", "-CA", "home.crt", "-CAkey", "home.key", "-CAcreateserial"),
        *("-out", "broker.crt", "-days", "2", "-extfile", "names"),
        folder=tmp_path,
    )
    port = free_port()
    (tmp_path / "mosquitto.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_dest none\nuser root\n"
        f"certfile {tmp_path}/broker.crt\nkeyfile {tmp_path}/broker.key\n"
    )
    broker = subprocess.Popen([binary, "-c", str(tmp_path / "mosquitto.conf")], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + HANG_GUARD_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield port, signer
    finally:
        broker.terminate()
        broker.wait(HANG_GUARD_S)


async def linked(settings, *, connected):
    """Run a link until it is connected (or has failed once), and give its state."""
    link = MqttLink(settings, inbox=Inbox(capacity=4), clock=SystemClock())
    running = asyncio.ensure_future(link.run())
    try:
        async with asyncio.timeout(HANG_GUARD_S):
            while not (link.state.connected if connected else link.state.lost):  # noqa: ASYNC110  # as the page does
                await asyncio.sleep(0.02)
        return link.state
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_broker_signed_by_the_owners_authority_is_spoken_to(tls_broker):
    port, signer = tls_broker
    state = await linked(MqttSettings("127.0.0.1", port, tls_ca=signer), connected=True)
    assert state.connected


async def test_a_broker_signed_by_somebody_else_is_not(tls_broker, tmp_path):
    port, _ = tls_broker
    stranger = authority(tmp_path, "stranger")
    state = await linked(MqttSettings("127.0.0.1", port, tls_ca=stranger), connected=False)
    assert not state.connected
    assert "certificate" in state.trouble


async def test_a_certificate_of_another_name_or_that_ran_out_is_refused_and_said(tls_broker, tmp_path):
    port, signer = tls_broker
    state = await linked(MqttSettings("localhost", port, tls_ca=signer), connected=False)
    assert "certificate is not valid for 'localhost'" in state.trouble
    openssl(
        *("x509", "-req", "-in", "broker.csr", "-CA", "home.crt", "-CAkey", "home.key", "-CAcreateserial"),
        *("-out", "old.crt", "-days", "-1", "-extfile", "names"),
        folder=tmp_path,
    )
    with Mosquitto(tmp_path / "old", f"certfile {tmp_path}/old.crt", f"keyfile {tmp_path}/broker.key") as old:
        state = await linked(MqttSettings("127.0.0.1", old.port, tls_ca=signer), connected=False)
    assert "certificate has expired" in state.trouble


async def test_tls_to_a_broker_in_the_clear_and_the_other_way_round_is_said(tls_broker, tmp_path):
    port, signer = tls_broker
    state = await linked(MqttSettings("127.0.0.1", port), connected=False)
    assert "the broker must keep the connection" in state.trouble
    with Mosquitto(tmp_path / "clear") as clear:
        state = await linked(MqttSettings("127.0.0.1", clear.port, tls_ca=signer), connected=False)
    assert f"must listen at 127.0.0.1:{clear.port}" in state.trouble


@pytest.mark.parametrize("text", [None, "", "no certificate"])
async def test_an_authority_that_is_no_file_of_certificates_is_named(tmp_path, text):
    file = tmp_path / "ca.crt"
    if text is not None:
        file.write_text(text)
    state = await linked(MqttSettings("127.0.0.1", free_port(), tls_ca=file), connected=False)
    assert f"mqtt.tls_ca must hold certificates (PEM), {file}: " in state.trouble
