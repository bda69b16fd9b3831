"""Reads a profile: TOML text in, one checked `Profile` out. Pure.

Every key is looked at: one nobody knows, one that is missing and a value outside its rule are
refused with file, key, what was expected and what was found. What is accepted here cannot fail
later for being written wrongly.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from gateway.errors import ImportRefused
from gateway.links.profile import (
    CODECS,
    REPLAYS,
    UNITS,
    Clock,
    Condition,
    Counter,
    EventRule,
    Identity,
    Layout,
    Match,
    Profile,
    Reply,
    Stream,
    Template,
    Value,
)
from gateway.stored import EVENT_FIELDS

__all__ = ["read_profile"]

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\Z")
_LEVEL = re.compile(r"\{[a-z_]+\}\Z|[^{}+#\0/]+\Z")
_PATH = re.compile(r"[^\s{}.]+(\.[^\s{}.]+)*\Z")
_HOLE = re.compile(r"\{([^{}]*)\}")
_TYPE = re.compile(r"[ui](8|16|24|32|48|64)\Z|f32\Z|bytes:[1-9][0-9]?\Z|fdxb\Z|skip:[1-9][0-9]?\Z")
_WORD = re.compile(r"hex\Z|size\Z|skip\Z|=[0-9A-Za-z]{1,16}\Z")
_DEEPEST = 8
_LARGEST = 10**20
_BASE_UUID = "0000{}-0000-1000-8000-00805f9b34fb"
_STREAM_OPTIONS = {
    "bowl": ("noise_mg", "least_mg", "gap_ms", "settle_ms", "hold_ms", "low_mg", "high_mg", "fastest_mg_s"),
    "platform": ("noise_mg", "least_mg", "settle_ms", "hold_ms", "low_mg", "high_mg"),
}
_TOP = (
    *("id", "version", "name", "device_kind", "transport", "codec", "replay", "match", "source", "dedupe"),
    *("layout", "merge", "clock", "identity", "reply", "event", "stream", "signal", "items"),
)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file with the way to it, for errors that name the key."""

    source: str
    path: str
    found: Mapping[str, Any]

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def refuse(self, key: str, expected: str) -> ImportRefused:
        told = repr(self.found[key]) if key in self.found else "absent"
        return ImportRefused(
            self.source, f"must be {expected}, is {told if len(told) <= 80 else told[:77] + '...'}", field=self.at(key)
        )

    def known(self, *keys: str) -> None:
        for key in self.found:
            if key not in keys:
                near = [known for known in keys if _shorter(key) & _shorter(known)]
                told = f"; this key is not known{f', is {near[0]} meant?' if near else ''}"
                raise ImportRefused(self.source, f"must be one of {', '.join(keys)}{told}", field=self.at(key))

    def text(self, key: str, rule: str = "a text", holds: Callable[[str], bool] = bool) -> str:
        value = self.found.get(key)
        if not isinstance(value, str) or not holds(value):
            raise self.refuse(key, rule)
        return value

    def one_of(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        if default is not None and key not in self.found:
            return default
        return self.text(key, f"one of {', '.join(allowed)}", allowed.__contains__)

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.found.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.refuse(key, f"an integer from {low} to {high}")
        return value

    def flag(self, key: str) -> bool:
        value = self.found.get(key, False)
        if not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value

    def number(self, key: str) -> Decimal | None:
        value = self.found.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not Decimal(value).is_finite():
            raise self.refuse(key, "a number")
        if abs(Decimal(value)) > 10**15:
            raise self.refuse(key, "a number below 10^15")
        return Decimal(value)

    def path_at(self, key: str) -> str:
        return self.text(key, "a path such as content.pet_weight", lambda text: bool(_PATH.match(text)))

    def paths(self, key: str) -> tuple[str, ...]:
        values = self.found.get(key, [])
        good = isinstance(values, list) and all(isinstance(value, str) and _PATH.match(value) for value in values)
        if not good:
            raise self.refuse(key, "a list of paths such as content.pet_weight")
        return tuple(values)

    def table(self, key: str) -> _Table:
        value = self.found.get(key, {})
        if not isinstance(value, dict):
            raise self.refuse(key, "a table")
        return _Table(self.source, self.at(key), value)

    def maybe(self, key: str) -> _Table | None:
        return self.table(key) if key in self.found else None

    def tables(self, key: str) -> tuple[_Table, ...]:
        values = self.found.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.refuse(key, f"tables, each headed [[{key}]]")
        return tuple(_Table(self.source, f"{self.at(key)}[{n}]", value) for n, value in enumerate(values))

    def template(self, key: str) -> Template:
        text = self.text(key)
        pieces = _HOLE.split(text)
        texts, paths = tuple(pieces[::2]), tuple(pieces[1::2])
        if any("{" in piece or "}" in piece for piece in texts) or not all(_PATH.match(path) for path in paths):
            raise self.refuse(key, "a text in which {path} stands for a field")
        return Template(texts, paths)


def _shorter(word: str) -> set[str]:
    """A word, and it without any one letter: two words one slip apart share one of these."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def read_profile(text: str, *, source: str) -> Profile:
    """Read and check a profile.

    Parameters
    ----------
    text : str
        The file's content.
    source : str
        Its name, for errors.

    Raises
    ------
    ImportRefused
        Naming file, key, what was expected and what was found.
    """
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, InvalidOperation, RecursionError) as problem:  # a number of 5,000 digits is the first
        raise ImportRefused(source, f"must be TOML, but {problem}") from None
    if not _is_plain(document, _DEEPEST):
        raise ImportRefused(source, f"must nest at most {_DEEPEST} deep and hold numbers below 10^20, does not")
    top = _Table(source, "", document)
    top.known(*_TOP)
    transport = top.one_of("transport", ("mqtt", "ble"))
    codec = top.one_of("codec", CODECS)
    _check_pair(top, transport, codec)
    profile_id = top.text("id", "1 to 32 of a-z, 0-9 and -", lambda text: bool(_ID.match(text)))
    dedupe = top.table("dedupe")
    dedupe.known("key", "within_s", "packet_id", "family")
    layout = _layout(top, codec)
    made = Profile(
        id=profile_id,
        version=top.integer("version", 1, 1_000_000),
        name=top.text("name", "a name of 1 to 80 characters", lambda text: 1 <= len(text) <= 80),
        device_kind=top.text("device_kind"),
        transport=transport,
        codec=codec,
        replay=top.one_of("replay", REPLAYS),
        match=_match(top, transport),
        source=_source(top, transport),
        radio=top.table("source").flag("radio") or transport == "ble",
        family=dedupe.text("family", "1 to 32 of a-z, 0-9 and -", lambda text: bool(_ID.match(text)))
        if "family" in dedupe.found
        else profile_id,
        keys=_keys(dedupe),
        within_ms=1000 * dedupe.integer("within_s", 1, 400 * 86_400) if "within_s" in dedupe.found else None,
        packet_id=dedupe.path_at("packet_id") if "packet_id" in dedupe.found else None,
        signal=top.path_at("signal") if "signal" in top.found else None,
        items=top.text("items", "a path, or . for a list itself", lambda text: text == "." or bool(_PATH.match(text)))
        if "items" in top.found
        else None,
        layout=layout,
        merge=_condition(top.table("merge")) if "merge" in top.found else None,
        set_by=_set_by(top),
        identity=_identity(top),
        reply=_reply(top),
        events=tuple(_event(table) for table in top.tables("event")),
        stream=_stream(top),
    )
    _check_whole(top, made)
    return made


def _is_plain(found: object, deepest: int) -> bool:
    """Whether a value nests no deeper, and holds no number that takes a page to write."""
    if isinstance(found, dict | list):
        inner = found.values() if isinstance(found, dict) else found
        return deepest > 0 and all(_is_plain(each, deepest - 1) for each in inner)
    if isinstance(found, Decimal):
        return not found.is_finite() or abs(found.adjusted()) < 20
    return not isinstance(found, int) or abs(found) < _LARGEST


def _check_pair(top: _Table, transport: str, codec: str) -> None:
    if codec == "bthome" and transport != "ble":
        raise top.refuse("codec", "another codec: bthome is for transport ble")
    if transport == "ble" and codec not in ("bthome", "struct"):
        raise top.refuse("codec", "bthome or struct for transport ble")


def _check_whole(top: _Table, made: Profile) -> None:
    """What no single key decides."""
    names = [rule.name for rule in made.events]
    if len(set(names)) != len(names):
        raise top.refuse("event", "tables of different names; two are the same (give each a name)")
    if not made.events and made.stream is None:
        raise top.refuse("event", "at least one table [[event]], or a table [stream]")
    if made.stream is not None and (made.events or made.items or made.identity):
        raise top.refuse("stream", "alone: without event, items or identity")
    if made.keys and made.packet_id is not None:
        raise top.refuse("dedupe", "a key or a packet_id, not both")
    if made.replay in ("events", "history") and not made.keys and made.packet_id is None:
        raise top.refuse("dedupe", f"a table with a key: replay {made.replay!r} says that messages come again")
    if made.reply is not None and _hears(made, made.reply.topic):
        raise top.refuse("reply", "a table with a topic that the profile does not listen to itself")
    _check_topic_names(top, made)
    if made.items is not None and made.codec not in ("json", "msgpack"):
        raise top.refuse("items", "absent: only json and msgpack hold lists")


def _check_topic_names(top: _Table, made: Profile) -> None:
    """A ``topic.name`` no topic has would leave every message unread."""
    names = {level[1:-1] for topic in made.match.topics for level in topic.split("/") if level.startswith("{")}
    used = {
        "source": made.source.paths if made.source is not None else (),
        "dedupe": tuple(path for key in made.keys for path in key.paths),
        "event": tuple(path for rule in made.events for _, value in rule.values for _, path in value.terms),
    }
    for key, paths in used.items():
        for path in paths:
            head, _, name = path.partition(".")
            if head == "topic" and name and name not in names and made.transport == "mqtt":
                has = f"a level the topics name ({', '.join(sorted(names)) or 'they name none'})"
                raise ImportRefused(top.source, f"topic.NAME must be {has}, is {path!r}", field=key)


def _keys(dedupe: _Table) -> tuple[Template, ...]:
    """One template, or several of which the first that can be filled is taken."""
    found = dedupe.found.get("key")
    if not isinstance(found, list):
        return (dedupe.template("key"),) if "key" in dedupe.found else ()
    if not found or not all(isinstance(text, str) for text in found):
        raise dedupe.refuse("key", "a text in which {path} stands for a field, or a list of such texts")
    return tuple(
        _Table(dedupe.source, dedupe.at("key"), {str(n): text}).template(str(n)) for n, text in enumerate(found)
    )


def _hears(made: Profile, topic: Template) -> bool:
    """Whether an answer would come back as a message."""
    levels = "+".join(topic.texts).split("/")
    for wanted in made.match.topics:
        parts = wanted.split("/")
        if len(parts) == len(levels) and all(
            part.startswith("{") or "+" in level or part == level for part, level in zip(parts, levels, strict=True)
        ):
            return True
    return False


def _source(top: _Table, transport: str) -> Template | None:
    table = top.table("source")
    table.known("id", "radio")
    if transport == "ble":
        if "id" in table.found:
            raise table.refuse("id", "absent: a radio device is known by its address or key")
        return None
    return table.template("id")


def _match(top: _Table, transport: str) -> Match:
    table = top.table("match")
    table.known("topics", "service", "manufacturer", "require")
    require = table.paths("require")
    if transport == "mqtt":
        topics = table.found.get("topics")
        faults = [_topic_fault(topic) for topic in topics] if isinstance(topics, list) else []
        if not faults or any(faults):
            fault = next((f" ({fault})" for fault in faults if fault), "")
            raise table.refuse(
                "topics", f"a list of topics such as home/{{gateway}}/state, each level a text or a {{name}}{fault}"
            )
        assert isinstance(topics, list)
        return Match(topics=tuple(topics), require=require)
    if ("service" in table.found) == ("manufacturer" in table.found):
        raise top.refuse("match", "a table with a service or a manufacturer, one of them")
    if "manufacturer" in table.found:
        return Match(manufacturer=table.integer("manufacturer", 0, 65_535), require=require)
    service = table.text(
        "service", "a UUID, or its 4 hex digits", lambda text: bool(re.fullmatch(r"[0-9a-f]{4}|[0-9a-f-]{36}", text))
    )
    return Match(service=_BASE_UUID.format(service) if len(service) == 4 else service, require=require)


def _topic_fault(topic: object) -> str | None:
    """What is wrong with a topic, or None."""
    if not isinstance(topic, str):
        return "a topic is a text"
    if topic.startswith(("scentwalk/", "$")):
        return "scentwalk/ and $ are the hub's and the broker's own"
    levels = topic.split("/")
    if any(level in ("+", "#") for level in levels):
        return "for a level that anything fits write {name}, not + or #"
    if not all(levels):
        return "a level between two / is empty"
    if not all(_LEVEL.match(level) for level in levels):
        return "a {name} is a whole level, of a-z and _"
    # A first level that anything fits would have the hub hear the whole broker, Wire 1 included.
    return "at least one level is a text" if all(level.startswith("{") for level in levels) else None


def _condition(table: _Table) -> Condition:
    wanted: list[tuple[str, tuple[str, ...]]] = []
    for path, values in table.found.items():
        if isinstance(values, dict):  # a.b = 1 is TOML for a table a
            inner = _condition(_Table(table.source, table.at(path), values))
            wanted += ((f"{path}.{rest}", texts) for rest, texts in inner.wanted)
            continue
        texts = values if isinstance(values, list) else [values]
        if not _PATH.match(path) or not texts or not all(_is_scalar(value) for value in texts):
            raise table.refuse(path, "a text, number or truth value of that path, or a list of them")
        wanted.append((path, tuple(_plain(value) for value in texts)))
    return Condition(tuple(wanted))


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | bool | Decimal)


def _plain(value: object) -> str:
    """A value as the text that fields are compared by."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _set_by(top: _Table) -> Condition | None:
    clock = top.maybe("clock")
    if clock is None:
        return None
    clock.known("set_by")
    return _condition(clock.table("set_by"))


def _layout(top: _Table, codec: str) -> Layout:
    table = top.maybe("layout")
    if (table is not None) != (codec in ("hex", "struct")):
        wanted = "a table for codec hex or struct" if codec in ("hex", "struct") else f"absent: {codec} needs none"
        raise top.refuse("layout", wanted)
    if table is None:
        return Layout()
    table.known("words", "bytes", "order", "bits")
    if codec == "struct" and "words" in table.found:
        raise table.refuse("words", "absent: only hex has words before its bytes")
    bits = []
    for name in table.table("bits").found:
        runs = tuple((run, int(size)) for run, size in _pairs(table.table("bits"), name, re.compile(r"[1-9][0-9]?\Z")))
        bits.append((name, runs))
    return Layout(
        words=_pairs(table, "words", _WORD),
        parts=_pairs(table, "bytes", _TYPE),
        little=table.one_of("order", ("little", "big"), "little") == "little",
        bits=tuple(bits),
    )


def _pairs(table: _Table, key: str, allowed: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
    found = table.found.get(key, [])
    pairs = [tuple(str(text).partition(" ")[::2]) for text in found] if isinstance(found, list) else []
    if not isinstance(found, list) or not all(_PATH.match(name) and allowed.match(kind) for name, kind in pairs):
        raise table.refuse(key, f'a list of "name type" texts, each type as {allowed.pattern}')
    return tuple((name, kind) for name, kind in pairs)


def _identity(top: _Table) -> Identity | None:
    table = top.maybe("identity")
    if table is None:
        return None
    table.known("by", "from", "unit")
    return Identity(
        by=table.one_of("by", ("tag", "weight", "name", "nearness")),
        path=table.path_at("from"),
        unit=table.one_of("unit", tuple(UNITS["mg"]), "g"),
    )


def _reply(top: _Table) -> Reply | None:
    table = top.maybe("reply")
    if table is None:
        return None
    table.known("topic", "when", "fields")
    fields = table.table("fields")
    told = tuple(
        (name, value if isinstance(value, int) and not isinstance(value, bool) else fields.template(name))
        for name, value in fields.found.items()
    )
    return Reply(_condition(table.table("when")), table.template("topic"), told)


def _event(table: _Table) -> EventRule:
    table.known("name", "kind", "when", "time", "at", "about", "keep", "changed", "values")
    kind = table.one_of("kind", tuple(EVENT_FIELDS))
    fields = {each.name: each for each in EVENT_FIELDS[kind]}
    values = table.table("values")
    values.known(*fields)
    for name, each in fields.items():
        if each.unknown is None and name not in values.found:
            raise values.refuse(name, f"a table: a row of kind {kind} needs it, in {each.unit}")
    named = kind
    if "name" in table.found:
        named = table.text("name", "1 to 32 of a-z, 0-9 and -", lambda text: bool(_ID.match(text)))
    return EventRule(
        name=named,
        kind=kind,
        when=_condition(table.table("when")),
        values=tuple((name, _value(values.table(name), fields[name].unit)) for name in values.found),
        clocks=tuple(_clock(each) for each in table.tables("time")),
        at_end=table.one_of("at", ("start", "end"), "start") == "end",
        about=table.path_at("about") if "about" in table.found else None,
        keep=table.paths("keep"),
        changed=table.flag("changed"),
    )


def _clock(table: _Table) -> Clock:
    table.known("clock", "from", "unit")
    kind = table.one_of("clock", ("epoch", "local", "parts"))
    if kind != "epoch" and "unit" in table.found:
        raise table.refuse("unit", f"absent: clock {kind} has none")
    return Clock(kind, table.path_at("from"), table.one_of("unit", ("s", "ms"), "s"))


def _value(table: _Table, stored: str) -> Value:
    table.known("from", "unit", "scale", "unknown", "low", "high", "words", "counter", "modulus", "jitter")
    units = UNITS[stored]
    scale = table.number("scale")
    if scale == 0:
        raise table.refuse("scale", "a number other than 0")
    words = table.table("words")
    counter = None
    if "counter" in table.found:
        kind = table.one_of("counter", ("day", "total", "modulus"))
        modulus = table.integer("modulus", 2, 2**53) if kind == "modulus" else None
        counter = Counter(kind, modulus, table.integer("jitter", 0, 10**9, 0))
    low, high = table.number("low"), table.number("high")
    if low is not None and high is not None and low > high:
        raise table.refuse("low", f"at most high, which is {high}")
    unknown = table.found.get("unknown", [])
    if not isinstance(unknown, list) or not all(_is_scalar(value) for value in unknown):
        raise table.refuse("unknown", "a list of the values that mean: not known")
    return Value(
        terms=_terms(table),
        unit=table.one_of("unit", tuple(units), stored),
        scale=Decimal(1) if scale is None else scale,
        unknown=frozenset(_plain(value) for value in unknown),
        low=low,
        high=high,
        words=tuple((word, words.integer(word, -(2**31), 2**31)) for word in words.found),
        counter=counter,
    )


def _terms(table: _Table) -> tuple[tuple[int, str], ...]:
    found = table.found.get("from")
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise table.refuse("from", "a path, or a list of paths, each perhaps with a minus before it")
    terms = tuple((-1, text[1:]) if text.startswith("-") else (1, text) for text in texts)
    if not all(_PATH.match(path) for _, path in terms):
        raise table.refuse("from", "a path, or a list of paths, each perhaps with a minus before it")
    return terms


def _stream(top: _Table) -> Stream | None:
    table = top.maybe("stream")
    if table is None:
        return None
    to = table.one_of("to", tuple(_STREAM_OPTIONS))
    table.known("to", "from", "unit", "scale", *_STREAM_OPTIONS[to])
    value = _Table(
        table.source, table.path, {key: table.found[key] for key in ("from", "unit", "scale") if key in table.found}
    )
    options = tuple((name, table.integer(name, -(2**31), 2**31)) for name in _STREAM_OPTIONS[to] if name in table.found)
    return Stream(to, _value(value, "mg"), options)
