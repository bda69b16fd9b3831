"""Loads the packaged vocabulary, once.

In: the TOML files of ``gateway/ontology/data`` (through ``importlib.resources``; the only
files a pure room reads). Out: one frozen ``Ontology``, the same object at every call.
Never: a household's data. Ids that point nowhere stop the start, naming file and entry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from gateway.errors import ConfigError
from gateway.ontology.vocabulary import (
    DEFAULT_RELEVANCE,
    DeviceKind,
    LogKind,
    Ontology,
    Property,
    Relation,
    Rival,
    Sign,
    VertexKind,
)

__all__ = ["load", "read_table"]


def read_table(name: str) -> dict[str, Any]:
    """One packaged TOML file of ``gateway/ontology/data`` as plain tables.

    Raises
    ------
    ConfigError
        If the file is not TOML: the message names the file.
    """
    text = resources.files("gateway.ontology").joinpath("data", name).read_text(encoding="utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        raise ConfigError(f"ontology data {name} must be TOML: {broken}") from broken


def _relation(name: str, row: Mapping[str, Any]) -> Relation:
    return Relation(
        id=name,
        tails=tuple(row["tail"]),
        heads=tuple(row["head"]),
        walkable=bool(row["walkable"]),
        negative=bool(row.get("negative", False)),
        host=bool(row.get("host", False)),
        dated=bool(row.get("dated", False)),
        words=str(row["words"]),
    )


def _property(name: str, row: Mapping[str, Any]) -> Property:
    wire = row.get("wire", {})
    return Property(
        id=name,
        noun=str(row["noun"]),
        unit=str(row["unit"]),
        kind=str(row["kind"]),
        owner=str(row["owner"]),
        words=tuple(row["words"]),
        verb=str(row["verb"]),
        captured_by=tuple(row["captured_by"]),
        worse=str(row["worse"]),
        relevance=float(row.get("relevance", DEFAULT_RELEVANCE)),
        night_only=bool(row.get("night_only", False)),
        log=bool(row.get("log", False)),
        evidence_class=str(row.get("cls", "MEASURED")),
        wire_kind=wire.get("kind"),
        wire_field=wire.get("field"),
        sign_up=row.get("sign_up"),
        sign_down=row.get("sign_down"),
        caveat=str(row.get("caveat", "")),
        of_device=str(row.get("of_device", "")),
    )


def _device_kind(name: str, row: Mapping[str, Any], captures: tuple[str, ...]) -> DeviceKind:
    return DeviceKind(
        id=name,
        word=str(row["word"]),
        plain=str(row["plain"]),
        cite=str(row["cite"]),
        words=tuple(row["words"]),
        witness=str(row["witness"]),
        cannot_see=tuple(row["cannot_see"]),
        captures=captures,
        floor=bool(row.get("floor", False)),
    )


def _sign(name: str, row: Mapping[str, Any]) -> Sign:
    rivals = tuple(
        Rival(
            id=str(rival["id"]),
            text=str(rival["text"]),
            short=str(rival["short"]),
            slot=str(rival["slot"]),
            log=rival.get("log"),
        )
        for rival in row["rivals"]
    )
    return Sign(
        id=name,
        word=str(row["word"]),
        phrase=str(row["phrase"]),
        words=tuple(row["words"]),
        urgency=row.get("urgency"),
        rivals=rivals,
    )


def _log_kind(name: str, row: Mapping[str, Any]) -> LogKind:
    return LogKind(
        id=name,
        words=tuple(row.get("words", ())),
        relation=row.get("relation"),
        property=row.get("property"),
        med=row.get("med"),
        prevents=tuple(row.get("prevents", ())),
        slot=row.get("slot"),
        days=row.get("days"),
    )


def _check(ontology: Ontology) -> None:
    """Refuse tables whose ids point nowhere; the message names the entry and the missing id."""
    known_signs = {f"sign:{name}" for name in ontology.signs}
    for observed in ontology.properties.values():
        for sign in (observed.sign_up, observed.sign_down):
            if sign is not None and sign not in known_signs:
                raise ConfigError(f"series.toml, property.{observed.id}: its sign must be in signs.toml, is {sign!r}")
        for kind in observed.captured_by:
            if kind not in ontology.device_kinds:
                raise ConfigError(
                    f"series.toml, property.{observed.id}: captured_by must name a device kind, is {kind!r}"
                )
    for relation in ontology.relations.values():
        for kind in (*relation.tails, *relation.heads):
            if kind not in ontology.vertex_kinds:
                raise ConfigError(f"graph.toml, relation.{relation.id}: {kind!r} must be a vertex kind")
    for device in ontology.device_kinds.values():
        if device.witness not in ontology.reliability:
            raise ConfigError(f"series.toml, device_kind.{device.id}: witness {device.witness!r} has no reliability")
    for entry in ontology.signs.values():
        for rival in entry.rivals:
            if rival.log is not None and rival.log not in ontology.log_kinds:
                raise ConfigError(f"signs.toml, sign.{entry.id}: rival {rival.id} names no log kind: {rival.log!r}")
    for log in ontology.log_kinds.values():
        if log.relation is not None and log.relation not in ontology.relations:
            raise ConfigError(f"graph.toml, log_kind.{log.id}: {log.relation!r} must be a relation")
        if log.property is not None and log.property not in ontology.properties:
            raise ConfigError(f"graph.toml, log_kind.{log.id}: {log.property!r} must be a property")


@cache
def load() -> Ontology:
    """The ontology, read once from the packaged files and checked.

    Raises
    ------
    ConfigError
        If an id in the tables points nowhere.
    """
    graph, series, signs = read_table("graph.toml"), read_table("series.toml"), read_table("signs.toml")
    properties = {name: _property(name, row) for name, row in series["property"].items()}
    captures = {
        kind: tuple(name for name, observed in properties.items() if kind in observed.captured_by)
        for kind in series["device_kind"]
    }
    ontology = Ontology(
        vertex_kinds={
            name: VertexKind(id=name, word=str(row["word"]), walk=bool(row["walk"]))
            for name, row in graph["vertex_kind"].items()
        },
        relations={name: _relation(name, row) for name, row in graph["relation"].items()},
        properties=properties,
        device_kinds={name: _device_kind(name, row, captures[name]) for name, row in series["device_kind"].items()},
        signs={name: _sign(name, row) for name, row in signs["sign"].items()},
        log_kinds={name: _log_kind(name, row) for name, row in graph["log_kind"].items()},
        reliability={name: float(value) for name, value in graph["reliability"].items()},
    )
    _check(ontology)
    return ontology
