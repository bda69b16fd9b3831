"""The profiles a hub listens by: files in, who reads which message out.

Shipped profiles are enabled by their id, the owner's own by standing in the owner's folder (one
with a shipped id stands in its place). One that cannot be read stops no other: its sentence
is kept, to be shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import ConfigError, ImportRefused, PayloadError
from gateway.links.advertised import carried
from gateway.links.advertisement import TRANSPORT, Advertisement, unpack
from gateway.links.payloads import Reading, dead_letter
from gateway.links.profile import Profile
from gateway.links.profiled import topic_names
from gateway.links.profileread import read_profile
from gateway.model import RawFrame
from gateway.ontology.load import load as load_ontology

__all__ = ["Claim", "ProfileSet", "check_file", "doubts", "load_profiles", "shipped"]

_SHIPPED = Path(__file__).with_name("profiles")
_MOST_BYTES = 65_536
"""The longest shipped profile has 3 KiB; reading TOML costs a second a megabyte."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Which profile reads a message; ``family`` are the ids that share its keys, ``others`` counts
    further profiles that would have.
    """

    profile: Profile
    family: tuple[str, ...]
    others: int = 0


class ProfileSet:
    """Enabled profiles. Immutable once made.

    Parameters
    ----------
    profiles : iterable of Profile
        Of different ids.
    troubles : tuple of str
        What is wrong with those that could not be read.
    """

    def __init__(self, profiles: Iterable[Profile] = (), *, troubles: tuple[str, ...] = ()) -> None:
        # The one that names more levels knows the device better; then by id, so that it never changes.
        self.profiles = tuple(sorted(profiles, key=lambda one: (-_named_levels(one), one.id)))
        self.troubles = troubles
        self.topics = _filters(topic for one in self.profiles for topic in one.match.topics)

    @property
    def hears_radio(self) -> bool:
        return any(one.transport == "ble" for one in self.profiles)

    def get(self, profile_id: str) -> Profile | None:
        """The enabled profile of an id, or None."""
        return next((one for one in self.profiles if one.id == profile_id), None)

    def family(self, name: str) -> tuple[str, ...]:
        """The ids of the profiles that share a space of keys."""
        return tuple(one.id for one in self.profiles if one.family == name)

    def wants(self, advertisement: Advertisement) -> bool:
        """Whether a profile reads this advertisement: a street full of phones must not fill a database."""
        return any(one.transport == "ble" and carried(advertisement, one.match) is not None for one in self.profiles)

    def claim(self, raw: RawFrame) -> Claim | None:
        """Who reads a message; None where nobody does.

        Raises
        ------
        PayloadError
            It came as an advertisement and is none.
        """
        if raw.transport == TRANSPORT:
            heard = unpack(raw.payload)
            found = [one for one in self.profiles if one.transport == "ble" and carried(heard, one.match) is not None]
        else:
            found = [one for one in self.profiles if topic_names(one, raw.device) is not None]
        return Claim(found[0], self.family(found[0].family), len(found) - 1) if found else None

    def read(self, raw: RawFrame, *, retained: bool = False) -> Reading:
        """A message with the profile that reads it; a dead letter where none does."""
        try:
            claim = self.claim(raw)
        except PayloadError as problem:
            letter = dead_letter(raw, problem.reason, str(problem), boot=None, seq=None, payload=raw.payload)
            return Reading(raw, None, (), (letter,), retained=retained)
        if claim is None:
            detail = f"a message must be of an enabled profile, none takes {raw.device[:100]!r}"
            letter = dead_letter(raw, "no_profile", detail, boot=None, seq=None, payload=raw.payload)
            return Reading(raw, None, (), (letter,), retained=retained)
        return Reading(raw, None, (), (), urgent=claim.profile.reply is not None, retained=retained, claim=claim)


def _named_levels(profile: Profile) -> int:
    return max(
        (sum(not level.startswith("{") for level in topic.split("/")) for topic in profile.match.topics), default=0
    )


def _filters(topics: Iterable[str]) -> tuple[str, ...]:
    """MQTT filters of topics, without those that another covers: what two filters fit comes twice."""
    wanted = sorted(
        {"/".join("+" if level.startswith("{") else level for level in topic.split("/")) for topic in topics}
    )
    return tuple(one for one in wanted if not any(other != one and _covers(other, one) for other in wanted))


def _covers(wide: str, narrow: str) -> bool:
    parts, levels = wide.split("/"), narrow.split("/")
    return len(parts) == len(levels) and all(part in ("+", level) for part, level in zip(parts, levels, strict=True))


def shipped() -> dict[str, Path]:
    """The profiles that come with the hub: id to file."""
    return {path.stem: path for path in sorted(_SHIPPED.glob("*.toml"))}


def check_file(path: Path) -> Profile:
    """Read one profile file.

    Raises
    ------
    ImportRefused
        It cannot be read, or breaks a rule; naming file, key, expectation and finding.
    """
    try:
        if not path.is_file():  # a pipe would be waited for without end
            raise ImportRefused(str(path), "a profile must be a file, is none")
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ImportRefused(str(path), f"a profile must have at most {_MOST_BYTES} bytes, has more")
        text = raw.decode("utf-8-sig")
    except OSError as problem:
        raise ImportRefused(str(path), f"a profile must be readable, but {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ImportRefused(str(path), f"a profile must be UTF-8, is not at byte {problem.start}") from None
    made = read_profile(text, source=str(path))
    kinds = load_ontology().device_kinds
    if made.device_kind not in kinds:
        raise ImportRefused(
            str(path), f"must be one of {', '.join(kinds)}, is {made.device_kind!r}", field="device_kind"
        )
    return made


def doubts(made: Profile) -> tuple[str, ...]:
    """What can be read and is seldom meant: a level of the topic asked for in the message."""
    names = {level[1:-1] for topic in made.match.topics for level in topic.split("/") if level.startswith("{")}
    used = [("source.id", path) for path in (() if made.source is None else made.source.paths)]
    used += [("dedupe.key", path) for key in made.keys for path in key.paths]
    return tuple(
        f"{key} takes {{{path}}} from the message; the level of the topic is {{topic.{path}}}"
        for key, path in used
        if path in names
    )


def load_profiles(*, enabled: tuple[str, ...], folder: Path | None) -> ProfileSet:
    """The enabled shipped profiles and all of the owner's folder.

    Parameters
    ----------
    enabled : tuple of str
        Ids of shipped profiles; ``all`` enables every one.
    folder : Path or None
        The owner's own.

    Raises
    ------
    ConfigError
        An id nobody ships, or a folder that cannot be read.
    """
    known = shipped()
    for name in enabled:
        if name != "all" and name not in known:
            raise ConfigError(f"profiles.enabled must hold ids of {', '.join(known)}, or all; found {name!r}")
    found = {name: check_file(path) for name, path in known.items() if "all" in enabled or name in enabled}
    troubles = []
    own: dict[str, Path] = {}
    for path in () if folder is None else _files(folder):
        try:
            made = check_file(path)
        except ImportRefused as problem:
            troubles.append(f"The profile {path.name} is not used: {problem}.")
            continue
        if made.id in own:
            troubles.append(f"The profile {path.name} is not used: {own[made.id].name} has its id {made.id!r} too.")
            continue
        own[made.id] = path
        found[made.id] = made
    return ProfileSet(found.values(), troubles=tuple(troubles))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError as problem:
        raise ConfigError(f"profiles.path must be a readable folder, but {folder}: {problem.strerror}") from None
