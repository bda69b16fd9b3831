"""The configuration: what is left out has a default, what is wrong is refused by name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import config
from gateway.app import mqtt_settings
from gateway.config import Config, Mqtt, load
from gateway.errors import ConfigError

SECTIONS = {each.name for each in dataclasses.fields(Config)}


def written(folder: Path, text: str) -> Path:
    path = folder / "scentwalk.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return str(caught.value)


def test_no_file_is_a_working_default_on_loopback() -> None:
    ours = load(None)
    assert ours == Config()
    assert (ours.web.host, ours.web.port) == ("127.0.0.1", 8080)
    assert ours.mqtt.host == "127.0.0.1"
    assert ours.answer.token_budget == 600


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")) == Config()


def test_a_full_file_is_read_key_by_key(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [database]
        path = "/var/lib/scentwalk/home.db"
        [mqtt]
        host = "broker.home"
        port = 8883
        protocol = 311
        inflight = 100
        client_id = "hub-2"
        keepalive_s = 30
        username = "hub"
        password_file = "secret/mqtt"
        tls_ca = "/etc/ca.pem"
        [web]
        host = "::1"
        port = 0
        [log]
        level = "debug"
        [answer]
        token_budget = 900
        [retention]
        raw_days = 730
        dead_letter_days = 30
        """,
    )
    ours = load(path)
    assert ours.database.path == Path("/var/lib/scentwalk/home.db")
    assert ours.mqtt == Mqtt(
        host="broker.home",
        port=8883,
        protocol=311,
        inflight=100,
        client_id="hub-2",
        keepalive_s=30,
        username="hub",
        password_file=tmp_path / "secret" / "mqtt",
        tls_ca=Path("/etc/ca.pem"),
    )
    assert (ours.web.host, ours.web.port, ours.log.level) == ("::1", 0, "debug")
    assert (ours.answer.token_budget, ours.retention.raw_days, ours.retention.dead_letter_days) == (900, 730, 30)


def test_every_key_has_a_rule_and_every_rule_a_key() -> None:
    keys = {name: {each.name for each in dataclasses.fields(kind)} for name, kind in config._SECTIONS.items()}
    assert keys == {name: set(rules) for name, rules in config._RULES.items()}
    assert set(keys) == SECTIONS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mqtt]\nprot = 1883\n", "a key of [mqtt] must be one of host, port, protocol"),
        ("[mqtt]\nprot = 1883\n", "found 'prot'"),
        ("[pets]\nname = 'Max'\n", "a section must be one of database, mqtt, ble, profiles, web"),
        ("mqtt = 5\n", "mqtt must be a section [mqtt] of keys, is 5"),
        ("[mqtt]\nport = 70000\n", "mqtt.port must be an integer from 1 to 65535, is 70000"),
        ("[mqtt]\nport = '1883'\n", "mqtt.port must be an integer from 1 to 65535, is '1883'"),
        ("[mqtt]\nport = true\n", "mqtt.port must be an integer from 1 to 65535, is True"),
        ("[mqtt]\nport = 1883.0\n", "is 1883.0"),
        ("[mqtt]\nport.x = 1\n", "is {'x': 1}"),
        ("[mqtt]\nprotocol = 4\n", "mqtt.protocol must be one of 5, 311, is 4"),
        ("[mqtt]\nprotocol = 5.0\n", "is 5.0"),
        ("[mqtt]\nprotocol = [5]\n", "is [5]"),
        ("[mqtt]\nhost = 'mqtt://home'\n", "without scheme, port or blanks, is 'mqtt://home'"),
        ("[mqtt]\nhost = 'home:1883'\n", "without scheme, port or blanks"),
        ("[mqtt]\nhost = ''\n", "is ''"),
        ("[mqtt]\nclient_id = 'two words'\n", "mqtt.client_id must be 1 to 23 letters"),
        ("[mqtt]\nusername = 'hub'\n", "mqtt.password_file must be given together with mqtt.username, is absent"),
        ("[mqtt]\npassword_file = 'x'\n", "mqtt.username must be given together with mqtt.password_file, is absent"),
        ("[mqtt]\ntls_ca = ''\n", "mqtt.tls_ca must be a file path, or absent, is ''"),
        ("[database]\npath = ''\n", "database.path must be a file path, is ''"),
        ("[database]\npath = 5\n", "database.path must be a file path, is 5"),
        ("[database]\npath = 'a\\u0000b'\n".replace("'", '"'), "database.path must be a file path"),
        ("[log]\nlevel = 'INFO'\n", "log.level must be one of 'debug', 'info', 'warning', 'error', is 'INFO'"),
        ("[answer]\ntoken_budget = 99\n", "from 100 to 10000 tokens, is 99"),
        ("[retention]\nraw_days = 30\n", "from 90 to 36500 days, is 30"),
        ("[mqtt\n", "must be TOML"),
        ("[mqtt]\nport = 1\nport = 2\n", "must be TOML"),
        ("a = " + "[" * 100_000, "nested deeply"),
    ],
)
def test_a_wrong_file_is_refused_naming_file_key_expected_and_found(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert said in message
    assert len(message) < len(str(path)) + 300


def test_a_file_that_is_absent_a_folder_or_not_utf8_is_named(tmp_path: Path) -> None:
    assert "must be readable" in refusal(tmp_path / "absent.toml")
    assert "must be readable" in refusal(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"[log]\nlevel = '\xe4'\n")
    assert "must be UTF-8, is not at byte 15" in refusal(tmp_path / "latin.toml")


def test_values_made_in_code_meet_the_same_rules() -> None:
    with pytest.raises(ConfigError, match=r"mqtt\.port must be an integer from 1 to 65535, is 0"):
        dataclasses.replace(Config().mqtt, port=0)


def test_a_config_cannot_be_changed_after_it_was_checked() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().mqtt.port = 1  # type: ignore[misc]


@given(port=st.integers(-(2**70), 2**70), inflight=st.integers(-10, 100_000))
def test_a_port_is_taken_exactly_where_tcp_has_one(
    tmp_path_factory: pytest.TempPathFactory, port: int, inflight: int
) -> None:
    path = written(tmp_path_factory.getbasetemp(), f"[mqtt]\nport = {port}\ninflight = {inflight}\n")
    if 1 <= port <= 65_535 and 1 <= inflight <= 65_535:
        assert (load(path).mqtt.port, load(path).mqtt.inflight) == (port, inflight)
    else:
        assert "must be an integer from 1 to 65535" in refusal(path)


@given(
    key=st.text(min_size=1).filter(lambda key: key not in SECTIONS and key.encode("utf-8", "ignore").decode() == key)
)
def test_any_unknown_section_is_refused(tmp_path_factory: pytest.TempPathFactory, key: str) -> None:
    # A JSON string with its escapes is a TOML basic string, DEL apart.
    quoted = json.dumps(key, ensure_ascii=True).replace("\x7f", "\\u007f")
    if "\\ud" in quoted:
        return  # JSON writes two surrogates where TOML wants one scalar
    path = written(tmp_path_factory.getbasetemp(), f"[{quoted}]\n")
    assert "a section must be one of" in refusal(path)


@given(data=st.binary(max_size=200))
def test_no_bytes_make_anything_but_a_config_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(data)
    try:
        outcome: Config | ConfigError = load(path)
    except ConfigError as problem:
        outcome = problem
    assert isinstance(outcome, Config) or str(outcome).startswith(f"{path}: ")


def test_a_password_is_taken_to_the_letter_but_for_its_lines_end(tmp_path):
    file = tmp_path / "secret"
    for written, password in ((b" p\xc3\xa4ss \n", " päss "), (b"\xef\xbb\xbfp\r\n", "p"), (b"\xc2\xa0", "\u00a0")):
        file.write_bytes(written)
        config = Config(mqtt=Mqtt(username="hub", password_file=file))
        assert mqtt_settings(config).password == password


@pytest.mark.parametrize("written", [None, b"\xff", b"p" * 70_000])
def test_a_password_that_cannot_be_one_is_said_and_no_traceback(tmp_path, written):
    file = tmp_path / "secret"
    if written is not None:
        file.write_bytes(written)
    with pytest.raises(ConfigError, match=r"mqtt\.password"):
        mqtt_settings(Config(mqtt=Mqtt(username="hub", password_file=file)))


def test_a_client_id_that_no_topic_can_hold_is_said_and_no_traceback():
    with pytest.raises(ConfigError, match="client_id must be 1 to 32 of a-z"):
        mqtt_settings(Config(mqtt=Mqtt(client_id="Hub")))
