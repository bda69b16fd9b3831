"""The host's configuration: one TOML file in, one frozen ``Config`` out.

Only what belongs to the host stands here: ports, broker, paths, log, limits. The household
(pets, devices, zone) lives in the database. A key nobody knows is refused, so a misspelt one
never silently leaves its default; every value is checked by one table, whether it comes from
a file or is made in code. Reads that one file and nothing else: no environment, no other path.

    [database]  path
    [mqtt]      host port protocol inflight client_id keepalive_s username password_file tls_ca
    [ble]       adapter trackers
    [profiles]  enabled path
    [web]       host port
    [log]       level
    [answer]    token_budget
    [retention] raw_days dead_letter_days
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.errors import ConfigError

__all__ = ["Answering", "Ble", "Config", "Database", "Log", "Mqtt", "Profiles", "Retention", "Web", "load"]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a value must be, in words and as a test."""

    expected: str
    holds: Callable[[Any], bool]


def _integer(low: int, high: int, unit: str = "") -> _Rule:
    # bool is an int to Python, never to an owner who wrote `port = true`.
    return _Rule(
        f"an integer from {low} to {high}{unit}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def _one_of(*allowed: int | str) -> _Rule:
    words = ", ".join(repr(value) for value in allowed)
    # By type as well: 5.0 and True equal integers, and are not what was asked for.
    return _Rule(f"one of {words}", lambda value: any(type(value) is type(one) and value == one for one in allowed))


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable() and not any(map(str.isspace, value))


def _is_path(value: Any) -> bool:
    return isinstance(value, Path) and "\0" not in str(value) and str(value) not in {"", "."}


def _or_absent(rule: _Rule) -> _Rule:
    return _Rule(f"{rule.expected}, or absent", lambda value: value is None or rule.holds(value))


# A host is a name or an address; a scheme or a port in it is the commonest mistake.
_HOST = _Rule(
    "a host name or address without scheme, port or blanks",
    lambda value: _is_word(value) and "/" not in value and (value.count(":") != 1),
)
# MQTT's own limit of a UTF-8 string; a client id longer than 23 bytes may be refused by a 3.1.1 broker.
_CLIENT_ID = _Rule(
    "1 to 23 letters, digits, '-' or '_'",
    lambda value: _is_word(value) and value.isascii() and len(value) <= 23 and value.replace("-", "_").isidentifier(),
)
# bleak takes any powered adapter where none is named; so one is always named, or nothing is on.
_ADAPTER = _Rule(
    "hci and a number, or 'only' for the one there is",
    lambda value: (
        value == "only" or (isinstance(value, str) and value[:3] == "hci" and value[3:].isdecimal() and value.isascii())
    ),
)
_IDS = _Rule(
    "a list of profile ids, or of the word all",
    lambda value: isinstance(value, tuple) and all(map(_is_word, value)),
)
_DEVICES = _Rule(
    "a list of device ids",
    lambda value: isinstance(value, tuple) and all(map(_is_word, value)),
)
_WORD = _Rule("text without blanks", _is_word)
_PATH = _Rule("a file path", _is_path)

_RULES: dict[str, dict[str, _Rule]] = {
    "database": {"path": _PATH},
    "mqtt": {
        "host": _HOST,
        "port": _integer(1, 65_535),
        # Configured, never probed: iotcore closes a v5 CONNECT on its plain listener without a word.
        "protocol": _one_of(5, 311),
        "inflight": _integer(1, 65_535, " messages"),
        "client_id": _CLIENT_ID,
        "keepalive_s": _integer(5, 3_600, " seconds"),
        "username": _or_absent(_WORD),
        "password_file": _or_absent(_PATH),
        "tls_ca": _or_absent(_PATH),
    },
    "ble": {"adapter": _or_absent(_ADAPTER), "trackers": _or_absent(_DEVICES)},
    "profiles": {"enabled": _IDS, "path": _or_absent(_PATH)},
    "web": {"host": _HOST, "port": _integer(0, 65_535)},
    "log": {"level": _one_of("debug", "info", "warning", "error")},
    # Below 100 not even one cited claim fits; above 10,000 nobody reads on.
    "answer": {"token_budget": _integer(100, 10_000, " tokens")},
    # The baseline looks back 56 days and a restated day needs its raw rows: less would starve it.
    "retention": {"raw_days": _integer(90, 36_500, " days"), "dead_letter_days": _integer(1, 36_500, " days")},
}


def _check(section: str, values: object) -> None:
    for key, rule in _RULES[section].items():
        value = getattr(values, key)
        if not rule.holds(value):
            raise ConfigError(f"{section}.{key} must be {rule.expected}, is {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 64:  # TOML has no such numbers, Python's reader does
        return f"an integer of {value.bit_length()} bits"
    found = repr(str(value)) if isinstance(value, Path) else repr(value)
    return found if len(found) <= 80 else f"{found[:77]}..."


@dataclass(frozen=True, slots=True)
class Database:
    """The one SQLite file."""

    path: Path = Path("scentwalk.db")

    def __post_init__(self) -> None:
        _check("database", self)


@dataclass(frozen=True, slots=True)
class Mqtt:
    """The broker and the gateway's session with it.

    ``protocol`` is 5 (mosquitto) or 311 (the embedded broker); ``inflight`` is how many
    messages may wait for their commit; ``client_id`` names the persistent session, so it
    stays the same over restarts. A password stands in a file of its own, never here.
    """

    host: str = "127.0.0.1"
    port: int = 1883
    protocol: int = 5
    inflight: int = 20
    client_id: str = "scentwalk"
    keepalive_s: int = 60
    username: str | None = None
    password_file: Path | None = None
    tls_ca: Path | None = None

    def __post_init__(self) -> None:
        _check("mqtt", self)
        if (self.username is None) != (self.password_file is None):
            given, absent = (
                ("username", "password_file") if self.password_file is None else ("password_file", "username")
            )
            raise ConfigError(f"mqtt.{absent} must be given together with mqtt.{given}, is absent")


@dataclass(frozen=True, slots=True)
class Ble:
    """The Bluetooth radio. Off where ``adapter`` is absent.

    ``adapter`` names one (``hci0``); ``only`` takes the one there is, and refuses to choose
    between two. ``trackers`` are the ids of the devices that may hand records over; absent, the
    household's wearables may.
    """

    adapter: str | None = None
    trackers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check("ble", self)


@dataclass(frozen=True, slots=True)
class Profiles:
    """Other makers' devices: the shipped profiles that are used, and the folder of the owner's own,
    all of which are.
    """

    enabled: tuple[str, ...] = ()
    path: Path | None = None

    def __post_init__(self) -> None:
        _check("profiles", self)


@dataclass(frozen=True, slots=True)
class Web:
    """Where the page listens. It asks nobody who they are: loopback unless the owner decides
    otherwise. Port 0 lets the system choose.
    """

    host: str = "127.0.0.1"
    port: int = 8080

    def __post_init__(self) -> None:
        _check("web", self)


@dataclass(frozen=True, slots=True)
class Log:
    """What is written to standard error."""

    level: str = "info"

    def __post_init__(self) -> None:
        _check("log", self)


@dataclass(frozen=True, slots=True)
class Answering:
    """The budget of an answer's evidence, in ceil(UTF-8 bytes / 4)."""

    token_budget: int = 600

    def __post_init__(self) -> None:
        _check("answer", self)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long raw rows and dead letters are kept, in days. Daily sums and cited rows stay."""

    raw_days: int = 400
    dead_letter_days: int = 90

    def __post_init__(self) -> None:
        _check("retention", self)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the host decides. ``Config()`` is a working default on loopback."""

    database: Database = field(default_factory=Database)
    mqtt: Mqtt = field(default_factory=Mqtt)
    ble: Ble = field(default_factory=Ble)
    profiles: Profiles = field(default_factory=Profiles)
    web: Web = field(default_factory=Web)
    log: Log = field(default_factory=Log)
    answer: Answering = field(default_factory=Answering)
    retention: Retention = field(default_factory=Retention)


_SECTIONS: dict[str, type] = {
    "database": Database,
    "mqtt": Mqtt,
    "ble": Ble,
    "profiles": Profiles,
    "web": Web,
    "log": Log,
    "answer": Answering,
    "retention": Retention,
}
_PATH_KEYS = frozenset({("database", "path"), ("mqtt", "password_file"), ("mqtt", "tls_ca"), ("profiles", "path")})


def load(path: Path | None) -> Config:
    """Read a configuration file; ``None`` is the default configuration.

    Relative paths in the file count from the file's own folder. Every section and key may
    be left out.

    Raises
    ------
    ConfigError
        The file cannot be read, is no TOML, holds an unknown section or key, or a value
        outside its rule. The message names file, key, expectation and finding.
    """
    if path is None:
        return Config()
    document = _parse(path)
    try:
        _known(document, _SECTIONS, "a section")
        sections = {name: _section(name, values, path.parent) for name, values in document.items()}
    except ConfigError as problem:
        raise ConfigError(f"{path}: {problem}") from None
    return Config(**sections)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: a configuration file must be readable, but: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path}: a configuration file must be UTF-8, is not at byte {problem.start}") from None
    except ValueError as problem:  # also a number of thousands of digits, which is no TOMLDecodeError
        raise ConfigError(f"{path}: a configuration file must be TOML, but: {problem}") from None
    except RecursionError:
        # tomllib descends once a bracket; nothing of ours nests deeper than a section.
        raise ConfigError(f"{path}: a configuration file must be sections of plain values, is nested deeply") from None


def _section(name: str, values: Any, folder: Path) -> Any:
    if not isinstance(values, dict):
        raise ConfigError(f"{name} must be a section [{name}] of keys, is {_shown(values)}")
    _known(values, _RULES[name], f"a key of [{name}]")
    # An empty path stays text and so fails its rule, instead of becoming the folder itself.
    located = {
        key: folder / value if (name, key) in _PATH_KEYS and isinstance(value, str) and value else value
        for key, value in values.items()
    }
    lists = {
        key: tuple(value)
        for key, value in located.items()
        if key in ("enabled", "trackers") and isinstance(value, list)
    }
    return _SECTIONS[name](**located | lists)


def _known(found: dict[str, Any], known: dict[str, Any], what: str) -> None:
    for key in found:
        if key not in known:
            raise ConfigError(f"{what} must be one of {', '.join(known)}; found {_shown(key)}")
