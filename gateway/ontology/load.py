"""Loads the packaged vocabulary, once.

In: the TOML files of ``gateway/ontology/data`` (through ``importlib.resources``; the only
files a pure room reads). Out: one frozen ``Ontology``, the same object at every call.
Never: a household's data. Ids that point nowhere stop the start, naming file and entry.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from gateway.errors import ConfigError
from gateway.model import stable_id
from gateway.ontology.figures import word_lists
from gateway.ontology.frames import Frame, Frames
from gateway.ontology.hazards import EmergencySign, Hazards, Pattern, PoisonLine, Toxin
from gateway.ontology.heat import body_heat
from gateway.ontology.kept import KeptAliases, KeptLexicon, KeptWords
from gateway.ontology.language import Language, Things, TimeWords
from gateway.ontology.phrases import Grammar, expand, with_optional
from gateway.ontology.recognise import Alias, Lexicon, Reading, Recogniser, fold_alias
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

__all__ = [
    "LANGUAGES",
    "hazards",
    "keeping",
    "kept",
    "languages",
    "load",
    "read_table",
    "things",
    "toy_breeds",
    "vocabulary_key",
    "vocabulary_lexicons",
    "vocabulary_words",
]

LANGUAGES = ("en", "es", "de")
"""English first: it is complete, and wins a tie when a text's language is told."""

_DEFAULT_WITHIN = 6
"""Words that may stand between two halves of a sign ("gums ... look very white")."""


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


_FILES = ("ingredients", "lang_de", "lang_en", "lang_es", "safety", "things")
"""The files that aliases are made of."""

_KEPT_FORM = 2
"""Raised when the rows themselves change shape or meaning."""

_FRAME_GAP = 2
"""Words between two parts of a frame ("hasn't really touched any of his food")."""

_PLAIN = Grammar()

_kept: list[KeptAliases] = []


@cache
def vocabulary_key() -> str:
    """Which vocabulary aliases are made of: a hash over the packaged files and the rows' form."""
    digest = hashlib.sha256(str(_KEPT_FORM).encode())
    for name in _FILES:
        digest.update(resources.files("gateway.ontology").joinpath("data", f"{name}.toml").read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def keeping(rows: KeptAliases) -> Iterator[None]:
    """Read aliases from kept rows within the block, instead of building them.

    For a process that answers and ends; by whoever knows that the rows are of this vocabulary
    (``vocabulary_key``). Where the vocabulary is built already it is used as it is.
    """
    loaded = (languages, hazards, things)
    if _kept or any(table.cache_info().currsize for table in loaded):
        yield
        return
    _kept.append(rows)
    try:
        yield
    finally:
        _kept.clear()
        for table in loaded:
            table.cache_clear()


def kept() -> KeptAliases | None:
    """The rows aliases are read from in this process; None where they are built."""
    return _kept[0] if _kept else None


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
        event_kind=wire.get("event"),
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
        wearable=bool(row.get("wearable", False)),
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


# --- languages and things -----------------------------------------------------------------


def _lexicon(name: str, kind: str, rows: Mapping[str, Any], grammar: Grammar = _PLAIN) -> Recogniser:
    return _recogniser(
        name,
        (
            Alias(form, Reading(kind, target))
            for target, phrases in rows.items()
            for phrase in phrases
            for form in expand(phrase, grammar)
        ),
    )


def _grammar(table: Mapping[str, Any]) -> Grammar:
    """How the phrases of a language's table are expanded."""
    return Grammar(
        sets={name: tuple(words) for name, words in table.get("set", {}).items()},
        verbs={verb: tuple(forms) for verb, forms in table.get("verb", {}).items()},
        spelling={word: str(meant) for word, meant in table.get("spelling", {}).items()},
        endings={ending: tuple(rows) for ending, rows in table.get("endings", {}).items()},
    )


def _frames(code: str, rows: Iterable[Mapping[str, Any]], stops: Iterable[str], grammar: Grammar) -> Frames:
    """The frames of a table: each part's forms are found once, however many frames name it."""
    ids: dict[str, str] = {}
    by_first: dict[str, list[Frame]] = {}
    for row in rows:
        for target in row["is"]:
            kind, _, meaning = target.partition(" ")
            for order in row["orders"]:
                for named in with_optional(order):
                    parts = tuple(ids.setdefault(part, str(len(ids))) for part in named)
                    frame = Frame(kind, meaning, parts, int(row.get("gap", _FRAME_GAP)))
                    by_first.setdefault(parts[0], []).append(frame)
    aliases = (Alias(form, Reading("part", number)) for part, number in ids.items() for form in expand(part, grammar))
    return Frames(
        parts=_recogniser(f"frame.{code}", aliases),
        by_first={part: tuple(frames) for part, frames in by_first.items()},
        stops=frozenset(stops),
    )


def _recogniser(name: str, aliases: Iterable[Alias]) -> Recogniser:
    rows = kept()
    return Lexicon(aliases) if rows is None else KeptLexicon(name, rows)


def _cues(code: str, table: Mapping[str, Any], grammar: Grammar) -> Recogniser:
    """Cue phrases, and where they mean something else (kind "unless")."""
    aliases = (
        Alias(form, Reading(kind, target))
        for kind, section in (("cue", "cue"), ("unless", "unless"))
        for target, phrases in table.get(section, {}).items()
        for phrase in phrases
        for form in expand(phrase, grammar)
    )
    return _recogniser(f"cue.{code}", aliases)


def _metrics(code: str, rows: Mapping[str, Any], grammar: Grammar) -> Recogniser:
    listed = {name: row.get("words", ()) for name, row in rows.items()}
    listed |= {f"{name}:{way}": row[way] for name, row in rows.items() for way in ("up", "down") if way in row}
    return _lexicon(f"metric.{code}", "metric", listed, grammar)


_JOINTS = ("since", "after", "before", "between", "and", "last", "ago", "ago_before")


def _time_words(code: str, table: Mapping[str, Any], grammar: Grammar) -> TimeWords:
    def folded(rows: Mapping[str, Any]) -> dict[str, Any]:
        return {" ".join(fold_alias(word)): value for word, value in rows.items()}

    fixed = _lexicon(f"fixed.{code}", "fixed", table["fixed"], grammar)
    joints = _lexicon(f"joint.{code}", "joint", {name: table.get(name, ()) for name in _JOINTS}, grammar)
    weekdays = folded({word: index for index, words in enumerate(table["weekdays"]) for word in words})
    months = folded({word: index + 1 for index, words in enumerate(table["months"]) for word in words})
    phrases = (*fixed.phrases(), *joints.phrases(), *weekdays, *months, *folded(table["number"]), "the")
    return TimeWords(
        fixed=fixed,
        events=_lexicon(f"event.{code}", "event", table["event"], grammar),
        joints=joints,
        weekdays=weekdays,
        months=months,
        starts=frozenset(phrase.split(" ")[0] for phrase in phrases),
        units=folded({word: unit for unit, words in table["unit"].items() for word in words}),
        numbers=folded(table["number"]),
        fillers=frozenset(table["fillers"]),
        ordinals=frozenset(table["ordinals"]),
        nights=frozenset(table["night"]),
    )


def _time_vocabulary(times: TimeWords) -> frozenset[str]:
    words = {
        word for phrase in (*times.weekdays, *times.months, *times.units, *times.numbers) for word in phrase.split(" ")
    }
    return frozenset(words) | _words_in(times.fixed, times.events, times.joints)


def _words_in(*lexicons: Recogniser) -> frozenset[str]:
    return frozenset(word for lexicon in lexicons for form in lexicon.phrases() for word in form.split(" "))


@cache
def languages() -> tuple[Language, ...]:
    """Every language's phrases, English first."""
    made = []
    for code in LANGUAGES:
        table = read_table(f"lang_{code}.toml")
        grammar = _grammar(table)
        cues = _cues(code, table, grammar)
        metrics = _metrics(code, table["metric"], grammar)
        directions = _lexicon(f"dir.{code}", "dir", table["direction"], grammar)
        frames = _frames(code, table.get("frame", ()), table.get("frame_stops", ()), grammar)
        times = _time_words(code, table["time"], grammar)
        made.append(
            Language(
                id=code,
                markers=frozenset(fold_alias(word)[0] for word in table["markers"]),
                cues=cues,
                metrics=metrics,
                directions=directions,
                frames=frames,
                known=_known(code, table, times, cues, metrics, directions, frames.parts),
                times=times,
                words=MappingProxyType({name: frozenset(words) for name, words in table["words"].items()}),
                phrases=MappingProxyType({name: tuple(phrases) for name, phrases in table["cue"].items()}),
                spelling=MappingProxyType(dict(grammar.spelling)),
            )
        )
    return tuple(made)


def _known(code: str, table: Mapping[str, Any], times: TimeWords, *lexicons: Recogniser) -> Container[str]:
    """Words of a language that are no misspelling."""
    rows = kept()
    if rows is not None:
        return KeptWords(rows, (f"known.{code}",))
    grammar = _grammar(table)
    plain = frozenset(
        word
        for phrase in (*table["markers"], *table["vocabulary"]["words"], *table["vocabulary"]["neighbours"])
        for form in (expand(phrase, grammar) if "~" in phrase else (phrase,))
        for word in fold_alias(form)
    )
    return plain | _words_in(*lexicons) | _time_vocabulary(times)


def _thing_aliases(table: Mapping[str, Any]) -> list[Alias]:
    aliases = []
    for name, row in table["species"].items():
        for key, phrases in row.items():
            kind = "species_plural" if key.endswith("plural") else "species"
            form = "name" if key == "en" else "exact"
            aliases += [Alias(phrase, Reading(kind, f"species:{name}"), form) for phrase in phrases]
    for name, phrases in table["breed"].items():
        aliases += [Alias(phrase, Reading("breed", f"breed:{name}"), "noun") for phrase in phrases]
    for kind in ("ing", "food", "med", "body", "cond", "topic", "src"):
        for name, row in table[kind].items():
            for code in LANGUAGES:
                form = "noun" if code == "en" and kind in {"ing", "food", "topic"} else "exact"
                aliases += [Alias(phrase, Reading(kind, f"{kind}:{name}"), form) for phrase in row.get(code, ())]
    for phrases in table["harmless"].values():
        aliases += [Alias(phrase, Reading("harmless", "harmless:word")) for phrase in phrases]
    return aliases


@cache
def things() -> Things:
    """Hosts, breeds, foods, ingredients, medicines for pets, body parts, topics, sources."""
    rows = kept()
    if rows is not None:
        return Things(lexicon=KeptLexicon("thing", rows), words=KeptWords(rows, ("known.thing",)))
    lexicon = Lexicon(_thing_aliases(read_table("things.toml")))
    return Things(lexicon=lexicon, words=_words_in(lexicon))


# --- safety -------------------------------------------------------------------------------


def _toxins(table: Mapping[str, Any]) -> tuple[dict[str, Toxin], list[Alias]]:
    toxins, aliases = {}, []
    for section, prefix in (("toxin", "tox"), ("medicine", "med")):
        for name, row in table[section].items():
            target = f"{prefix}:{name}"
            toxins[target] = Toxin(
                id=target,
                name=str(row.get("name", name.replace("_", " "))),
                species=tuple(row.get("species", ("dog", "cat"))),
                context=str(row.get("context", "any")),
                skin=bool(row.get("skin", False)),
                medicine=prefix == "med",
            )
            for key in ("words", "carriers", "es", "de"):
                form = "name" if key in {"words", "carriers"} else "exact"
                phrases = (phrase for word in row.get(key, ()) for phrase in _forms(word, _PLAIN))
                aliases += [Alias(phrase, Reading("tox", target), form) for phrase in phrases]
    return toxins, aliases


_ALTERNATIVES = re.compile(r"\|(?![^()]*\))")
"""Parts the alternatives of a sign's group; the "|" within "(a|b)" is the phrase's own."""


def _forms(item: str, grammar: Grammar) -> tuple[str, ...]:
    """The forms an alternative of a sign stands for; one without marks is as it is written."""
    marked = any(mark in item for mark in "~({")
    return tuple(form.replace("'", "") for form in (expand(item, grammar) if marked else (item,)))


def _patterns(table: Mapping[str, Any]) -> tuple[dict[str, EmergencySign], list[Pattern], list[Alias]]:
    """Signs, their patterns, and one alias per alternative, numbered by its group."""
    grammars = {code: _grammar(read_table(f"lang_{code}.toml")) for code in LANGUAGES}
    signs: dict[str, EmergencySign] = {}
    patterns: list[Pattern] = []
    aliases: list[Alias] = []
    count = 0
    for urgency in ("red", "amber"):
        for name, row in table[urgency].items():
            target = f"sign:{row.get('sign', name)}"
            sign = EmergencySign(
                target, str(row["word"]), urgency, row.get("first_aid"), told=bool(row.get("told", False))
            )
            signs.setdefault(target, sign)
            never = (form for phrase in row.get("not", ()) for form in _forms(phrase, grammars["en"]))
            aliases += [Alias(form, Reading("never", target)) for form in never]
            for code in LANGUAGES:
                for text in row.get(code, ()):
                    groups = []
                    for alternatives in text.split(" + "):
                        phrases: list[str] = []
                        for item in _ALTERNATIVES.split(alternatives):
                            phrases += table["group"][code][item[1:]] if item.startswith("@") else [item]
                        aliases += [
                            Alias(form, Reading("group", str(count)))
                            for phrase in phrases
                            for form in _forms(phrase, grammars[code])
                        ]
                        groups.append(count)
                        count += 1
                    within = int(row.get("within", _DEFAULT_WITHIN))
                    patterns.append(Pattern(target, code, tuple(groups), within, row.get("species")))
    return signs, patterns, aliases


def _near(table: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Word of a toxin, medicine or one-word red sign -> the languages it belongs to."""
    near: dict[str, set[str]] = {}
    for section in ("toxin", "medicine"):
        for row in table[section].values():
            for key, code in (("words", "en"), ("es", "es"), ("de", "de")):
                for phrase in row.get(key, ()):
                    words = () if "(" in phrase else fold_alias(phrase)
                    if len(words) == 1:
                        near.setdefault(words[0], set()).add(code)
    for row in table["red"].values():
        for code in LANGUAGES if not row.get("told", False) else ():
            for text in row.get(code, ()):
                for phrase in _ALTERNATIVES.split(text) if " + " not in text else ():
                    words = () if any(mark in phrase for mark in "~({") else fold_alias(phrase)
                    if len(words) == 1:
                        near.setdefault(words[0], set()).add(code)
    return {word: frozenset(codes) for word, codes in sorted(near.items())}


_WORD_LISTS = ("plain", "said_of", "not_the_thing", "whose")


@cache
def hazards() -> Hazards:
    """The safety tables, read once."""
    table = read_table("safety.toml")
    toxins, substance_aliases = _toxins(table)
    signs, patterns, signal_aliases = _patterns(table)
    for sign in signs.values():
        if sign.first_aid is not None and sign.first_aid not in table["first_aid"]:
            raise ConfigError(f"safety.toml, {sign.id}: first_aid must name a fixed line, is {sign.first_aid!r}")
    return Hazards(
        version=str(table["version"]),
        date=str(table["date"]),
        reviewed_by=str(table["reviewed_by"]),
        toxins=MappingProxyType(toxins),
        signs=MappingProxyType(signs),
        patterns=MappingProxyType({pattern.groups[0]: pattern for pattern in patterns}),
        substances=_recogniser("substance", substance_aliases),
        signals=_recogniser("signal", signal_aliases),
        lines=tuple(PoisonLine(**{"note": "", **row}) for row in table["line"]),
        unlisted=tuple(str(row["country"]) for row in table["unlisted"]),
        first_aid=MappingProxyType(dict(table["first_aid"])),
        near=MappingProxyType(_near(table)),
        words=MappingProxyType({name: word_lists(table[name]) for name in _WORD_LISTS}),
        heat=body_heat(table["temperature"]),
    )


def vocabulary_lexicons() -> dict[str, Recogniser]:
    """Every recogniser of the vocabulary under the name its rows are kept by."""
    found: dict[str, Recogniser] = {"thing": things().lexicon}
    for language in languages():
        times = language.times
        parts = ("cue", language.cues), ("metric", language.metrics), ("dir", language.directions)
        framed = ("frame", language.frames.parts)
        for name, lexicon in (*parts, framed, ("fixed", times.fixed), ("event", times.events), ("joint", times.joints)):
            found[f"{name}.{language.id}"] = lexicon
    return {**found, "substance": hazards().substances, "signal": hazards().signals}


def vocabulary_words() -> dict[str, Iterable[str]]:
    """Words that are no misspelling, under the names their rows are kept by; of a built vocabulary."""
    known = {f"known.{language.id}": language.known for language in languages()}
    plain = hazards().words["plain"]["words"]
    known |= {"known.thing": things().words}
    known |= {"known.hazard": plain | _words_in(hazards().substances, hazards().signals)}
    return {name: words for name, words in known.items() if isinstance(words, frozenset)}


@cache
def toy_breeds() -> tuple[str, ...]:
    """Ids of words that make a breed a toy breed: one may go without food half as long as others."""
    return tuple(stable_id(str(name)) for name in read_table("floors.toml")["toy_breeds"])
