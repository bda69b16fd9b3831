"""The room's packaged tables and texts, read once. Never anything of the household."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.errors import ConfigError

__all__ = ["packaged_text", "phrases", "table"]


@cache
def packaged_text(name: str) -> str:
    """A text file of ``gateway/knowledge/data``."""
    return resources.files("gateway.knowledge").joinpath("data", name).read_text(encoding="utf-8")


@cache
def table(name: str) -> dict[str, Any]:
    """A TOML file of ``gateway/knowledge/data``.

    Raises
    ------
    ConfigError
        If the file is not TOML; the message names it.
    """
    try:
        return tomllib.loads(packaged_text(name))
    except tomllib.TOMLDecodeError as broken:
        raise ConfigError(f"knowledge data {name} must be TOML: {broken}") from broken


@cache
def phrases(name: str, section: str, key: str) -> Mapping[str, tuple[tuple[str, ...], ...]]:
    """A list of phrases of a table: first word -> the phrases that begin so, longest first."""
    grouped: dict[str, list[tuple[str, ...]]] = {}
    for phrase in table(name)[section][key]:
        words = tuple(phrase.split())
        grouped.setdefault(words[0], []).append(words)
    return MappingProxyType({first: tuple(sorted(found, key=len, reverse=True)) for first, found in grouped.items()})
