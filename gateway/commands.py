"""Everything an owner can write down, by name: the page, the command line and the demo share it.

A command takes named texts and runs inside one transaction: it is done whole or refused
whole, with a sentence that says what must hold. Running it twice changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from functools import partial
from typing import TYPE_CHECKING, Any

from firmware_bridge.wire import is_device_id
from gateway.ask.scene import alias_rows
from gateway.errors import HouseholdError, ImportRefused
from gateway.forget import forget
from gateway.knowledge.household import read_household
from gateway.knowledge.labels import read_label
from gateway.knowledge.notes import log_kind_of, read_note
from gateway.knowledge.passages import read_passages, starter_guide
from gateway.knowledge.products import KnownFoods, read_products
from gateway.knowledge.purchases import Purchase, checked_purchase, purchase_records, read_purchases
from gateway.learn import answer_notice
from gateway.links.ingest import store_readings
from gateway.links.payloads import Reading
from gateway.links.profiled import topic_names
from gateway.links.profileread import read_profile
from gateway.links.profileset import Claim
from gateway.links.reprocess import Reprocessed, due_families, reprocess
from gateway.links.rollups import Rollups
from gateway.links.surefeed import read_surefeed, store_surefeed
from gateway.measure.days import instant_of, local_clock
from gateway.model import Device, Food, Household, RawFrame, RecordRef, Vertex, stable_id
from gateway.ontology.load import load, vocabulary_key
from gateway.stored import Learned, TextRecord
from gateway.web import Done

if TYPE_CHECKING:
    from gateway.links.profileset import ProfileSet
    from gateway.model import Pet
    from gateway.store import Transaction

__all__ = ["COMMANDS", "begin_command", "keep_aliases", "rederive", "run_command"]

_DAY_MS = 86_400_000
_EVERY = re.compile(r"(\d{1,4})\s*(d|days?|w|weeks?|h|hours?)\Z")
_EVERY_MS = {"d": _DAY_MS, "w": 7 * _DAY_MS, "h": 3_600_000}


def run_command(tx: Transaction, name: str, args: Mapping[str, str], *, now_ms: int) -> Done:
    """Run a command inside the caller's transaction.

    Raises
    ------
    ImportRefused, HouseholdError
        What was given cannot hold; nothing may be kept of it.
    """
    command = COMMANDS.get(name)
    if command is None:
        raise ImportRefused(name, f"must be one of {', '.join(COMMANDS)}", field="command")
    return command(tx, dict(args), now_ms)


def begin_command(name: str, args: Mapping[str, str]) -> Callable[[Transaction, int], Done]:
    """The command with what takes long done: reading a guide of 15 MB takes half a minute of a desk's
    processor, in which its transaction would keep devices waiting. To be run with ``now_ms``.

    Raises
    ------
    ImportRefused
        As `run_command` does, of a guide.
    """
    given = dict(args)
    if name == "passages":
        learned = _read_guide(given)
        return lambda tx, now_ms: _keep_guide(tx, learned, now_ms)
    return lambda tx, now_ms: run_command(tx, name, given, now_ms=now_ms)


def rederive(run: Callable[[Callable[[Transaction], Any]], Any], profiles: ProfileSet, *, everything: bool) -> Done:
    """Derive again what other versions of the profiles read, one transaction a family of profiles.

    Parameters
    ----------
    run : callable
        Runs a write in a transaction of its own and gives its result.
    profiles : ProfileSet
        As they are now.
    everything : bool
        Also what the present versions have read.
    """
    rollups = Rollups(load())
    due: tuple[str, ...] = run(partial(due_families, profiles=profiles, everything=everything))
    done: list[Reprocessed] = [
        run(partial(reprocess, profiles=profiles, family=family, rollups=rollups)) for family in due
    ]
    said = [one.words(family) for family, one in zip(due, done, strict=True)]
    return Done("\n".join(said) or "Everything was read by the profiles as they are; nothing to do.")


def keep_aliases(tx: Transaction) -> None:
    """Write the names of this vocabulary where the file holds another's, or none."""
    if tx.aliases_key() != vocabulary_key():
        tx.save_aliases(alias_rows(), key=vocabulary_key())


# --- reading arguments ---------------------------------------------------------------------------


def _need(args: Mapping[str, str], name: str) -> str:
    value = args.get(name, "").strip()
    if not value:
        raise ImportRefused("command", "must be given, is empty", field=name)
    return value


def _pet(tx: Transaction, args: Mapping[str, str]) -> Pet:
    asked = _need(args, "pet")
    home = tx.household()
    for pet in home.pets:
        if asked in (pet.id, pet.name) or asked.casefold() in (pet.name.casefold(), *map(str.casefold, pet.aliases)):
            return pet
    known = ", ".join(pet.name for pet in home.pets) or "nobody yet"
    raise ImportRefused("command", f"must be a pet of this home ({known}), is {asked!r}", field="pet")


def _instant(tx: Transaction, text: str, field: str) -> int:
    """A local date (taken at noon) or a local date and time, in ms UTC of the home's zone."""
    home = tx.household()
    if not home.zones:
        raise HouseholdError("the home must have a time zone first: scentwalk household import FILE.toml")
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            day, at = date.fromisoformat(text), time(12)
        else:
            instant = datetime.fromisoformat(text)
            if instant.tzinfo is not None:
                return round(instant.timestamp() * 1000)
            day, at = instant.date(), instant.time()
    except ValueError:
        raise ImportRefused(
            "command", f"must be a date such as 2026-07-03 or 2026-07-03T08:00, is {text!r}", field=field
        ) from None
    return instant_of(day.isoformat(), at.hour * 60 + at.minute, home.zones).at_ms


def _every_ms(text: str) -> int:
    found = _EVERY.match(text.strip().lower())
    if found is None or int(found[1]) == 0:
        raise ImportRefused("command", f"must be a span such as 30d, 4w or 12h, is {text!r}", field="every")
    return int(found[1]) * _EVERY_MS[found[2][0]]


def _sha8(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# --- commands ------------------------------------------------------------------------------------


def _household(tx: Transaction, args: dict[str, str], _now_ms: int) -> Done:
    file = read_household(_need(args, "text"), source=args.get("source", "household"))
    tx.save_household(file.household, valid_from_ms=0)
    for record in file.stated:
        tx.save_text(record)
    Rollups(load()).rebuild(tx, tx.household())
    tx.save_learned(starter_guide(), added_ms=0)
    home = file.household
    return Done(f"Kept {len(home.pets)} pets, {len(home.devices)} devices and {len(home.foods)} foods.")


def _surefeed(tx: Transaction, args: dict[str, str], _now_ms: int) -> Done:
    data = _need(args, "text").encode()
    history = read_surefeed(data, source=args.get("source", "surefeed"), zone=_need(args, "zone"))
    stored = store_surefeed(tx, history, rollups=Rollups(load()))
    tx.save_learned(starter_guide(), added_ms=0)
    pets = ", ".join(pet.name for pet in history.pets)
    left = "".join(f", {count} {category} rows left out" for category, count in history.left_out)
    return Done(f"{pets}: {stored.new} new rows, {stored.known} known already{left}.")


def _history(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    """A history that came as a file, read by a profile as if it had come by one of its topics."""
    profile = read_profile(_need(args, "profile"), source=args.get("profile_source", "profile"))
    topic = _need(args, "topic")
    if topic_names(profile, topic) is None:
        wanted = ", ".join(profile.match.topics) or "none: it listens to the radio"
        raise ImportRefused("command", f"must be a topic of {profile.id} ({wanted}), is {topic!r}", field="topic")
    raw = RawFrame("file", topic, now_ms, _need(args, "text").encode())
    reading = Reading(raw, None, (), (), claim=Claim(profile, (profile.id,)))
    counted = store_readings(tx, (reading,), rollups=Rollups(load())).counted
    unread = counted["dead_letters"]
    if not counted["records_stored"] and not counted["records_known"]:
        reason = next((letter.detail for letter in tx.dead_letters(limit=1)), "nothing in it is of this device")
        raise ImportRefused(args.get("source", "history"), f"must be what {profile.id} reads, but {reason}")
    left = f", {unread} that could not be read were kept apart" if unread else ""
    return Done(f"{counted['records_stored']} new records, {counted['records_known']} known already{left}.")


def _product(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    products = read_products(_need(args, "text"), source=args.get("source", "product"))
    new, known = 0, KnownFoods(tx.household().foods)
    for product in products:
        food = known.of(product.code, product.name)
        food_id = stable_id(product.name) if food is None else food.id
        tx.save_product(food_id, product.name if food is None else food.name, code=product.code)
        known.add(Food(food_id, product.name, code=product.code) if food is None else replace(food, code=product.code))
        tx.name_vertex(f"product:{product.code}", f"{product.name} (label)")
        new += tx.save_learned(product.learn(Vertex(f"food:{food_id}")), added_ms=now_ms)
    return Done(f"Read {len(products)} product{'s' if len(products) != 1 else ''}, {new} new records.")


def _purchases(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    source = args.get("source", "purchases")
    read = read_purchases(_need(args, "text"), source=source)
    new = _keep_purchases(tx, read, source, now_ms)
    return Done(f"Read {len(read)} purchase{'s' if len(read) != 1 else ''}, {new} new.")


def _bought(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    told = {name: " ".join(value.split()) for name, value in args.items()} | {"date": args.get("at", "")}
    one = checked_purchase({"quantity": "1"} | told, source="command")
    new = _keep_purchases(tx, (one,), "", now_ms)
    ref = purchase_records((one,), file="", days={one.date: 0})[0].ref
    said = f"Kept: bought {one.words()}." if new else f"That purchase was kept already: {one.words()}."
    return Done(f"{said} It says what was at home, not who was given it.", ref)


def _keep_purchases(tx: Transaction, read: tuple[Purchase, ...], file: str, now_ms: int) -> int:
    """Store what is new of these purchases, each from the beginning of its local day on; how many were."""
    home = tx.household()
    if not home.zones:
        raise HouseholdError("the home must have a time zone first: scentwalk household import FILE.toml")
    days = {one.date: instant_of(one.date, 0, home.zones).at_ms for one in read}
    for one in read:
        if days[one.date] > now_ms:
            raise ImportRefused(
                file or "command", f"must not lie in the future, is {one.date}", line=one.line or None, field="date"
            )
    return sum(tx.save_text(record) for record in purchase_records(read, file=file, days=days))


def _passages(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    return _keep_guide(tx, _read_guide(args), now_ms)


def _read_guide(args: dict[str, str]) -> Learned:
    return read_passages(_need(args, "text"), source=args.get("source", "guide"), title=args.get("title"))


def _keep_guide(tx: Transaction, learned: Learned, now_ms: int) -> Done:
    new = tx.save_learned(learned, added_ms=now_ms)
    said = f"Read {len(learned.records)} passages, {new} new records, {len(learned.edges)} links."
    return Done(said, learned.records[0].ref if learned.records else None)


def _log(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    pet = _pet(tx, args)
    what = _need(args, "what")
    at_ms = _instant(tx, _need(args, "at"), "at")
    if at_ms > now_ms + _DAY_MS:
        raise ImportRefused("command", "must not lie in the future", field="at")
    named = tuple(name for one in tx.household().medicines for name in (one.name, *one.aliases))
    kind = log_kind_of(what, medicines=named)
    days = None if kind is None else load().log_kinds[kind].days
    lasts_ms = _every_ms(args["every"]) if args.get("every") else None if days is None else days * _DAY_MS
    record = TextRecord(
        ref=RecordRef(f"log:{pet.id}-{at_ms}-{_sha8(what)}"),
        kind="log",
        title=what,
        text=what,
        pet=pet.id,
        at_ms=at_ms,
        until_ms=None if lasts_ms is None else at_ms + lasts_ms,
        object=kind or "note",
        facts=(("every", args["every"]),) if args.get("every") else (),
    )
    new = tx.save_text(record)
    said = f'Kept "{what}" for {pet.name}.' if new else f'"{what}" for {pet.name} was kept already.'
    return Done(said, record.ref)


def _lines(args: Mapping[str, str], source: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The objects of a file with one JSON object of texts a line, with their line."""
    for number, line in enumerate(args.get("text", "").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as problem:
            raise ImportRefused(source, f"must be a JSON object, but {problem}", line=number) from None
        if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
            raise ImportRefused(source, "must be an object of texts", line=number)
        yield number, entry


def _each_line(
    tx: Transaction, args: dict[str, str], now_ms: int, command: Callable[[Transaction, dict[str, str], int], Done]
) -> int:
    """Run a command for every line; each as of its own ``at``, so that a story may be entered at once."""
    source, count = args.get("source", "lines"), 0
    for number, entry in _lines(args, source):
        try:
            command(tx, entry, max(now_ms, _instant(tx, entry.get("at", ""), "at")))
        except ImportRefused as problem:
            raise ImportRefused(source, str(problem), line=number) from None
        count += 1
    return count


def _loglines(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    return Done(f"Kept {_each_line(tx, args, now_ms, _log)} log entries.")


def _marklines(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    return Done(f"Kept {_each_line(tx, args, now_ms, _wrong)} marks.")


def _food(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    pet, name, at_ms = _pet(tx, args), _need(args, "name"), _instant(tx, _need(args, "at"), "at")
    known = tx.household().food_of(args.get("code", ""), name)
    food = Food(stable_id(name), name) if known is None else known
    code = args.get("code") or food.code or f"own-{food.id}"
    tx.save_food(food.id, food.name, kind="food", code=code, aliases=())
    label = args.get("label", "").strip()
    opens = None
    if label:
        learned = read_label(code, label, title=name, source="typed in by the owner", food=Vertex(f"food:{food.id}"))
        tx.name_vertex(f"product:{code}", f"{name} (label)")
        tx.save_learned(learned, added_ms=now_ms)
        opens = learned.records[0].ref
    record = TextRecord(
        ref=RecordRef(f"log:{pet.id}-{at_ms}-{_sha8(name)}"),
        kind="log",
        title=food.name,
        text=f"{food.name} given to {pet.name}",
        pet=pet.id,
        at_ms=at_ms,
        object="food_change",
    )
    tx.save_text(record)
    without = "" if label else " I know when the food changed, not what is in it."
    return Done(f"Kept {food.name} for {pet.name}.{without}", opens or record.ref)


def _note(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    pet = _pet(tx, args)
    at_ms = _instant(tx, _need(args, "at"), "at")
    others = tuple(one.name for one in tx.household().pets if one.id != pet.id)
    learned = read_note(_need(args, "text"), pet=pet, at_ms=at_ms, author=args.get("author", "vet"), other_pets=others)
    tx.save_learned(learned, added_ms=now_ms)
    return Done(f"Kept the note for {pet.name}, word for word.", learned.records[0].ref)


def _wrong(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    reason, ref, hypothesis = _need(args, "reason"), args.get("ref"), args.get("hypothesis")
    if bool(ref) == bool(hypothesis):
        raise ImportRefused("command", "must name either a link or a supposed cause", field="ref")
    if ref:
        try:
            edge = RecordRef(ref)
        except ValueError as problem:
            raise ImportRefused("command", str(problem), field="ref") from None
        if edge.kind != "edge" or not tx.is_stored(edge):
            raise ImportRefused("command", f"must be a stored link, is {ref!r}", field="ref")
        number = tx.add_wall(edge=edge, hypothesis=None, reason=reason, marked_ms=now_ms)
    else:
        number = tx.add_wall(edge=None, hypothesis=hypothesis, reason=reason, marked_ms=now_ms)
    return Done(f"Marked as wrong (mark {number}). Undo it with: scentwalk undo {number}")


def _undo(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    text = _need(args, "number")
    if not text.isdecimal() or not tx.undo_wall(int(text), undone_ms=now_ms):
        raise ImportRefused("command", f"must be the number of an open mark, is {text!r}", field="number")
    return Done(f"Mark {text} is taken back.")


def _bind(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    device, pets = _need(args, "device"), frozenset(_need(args, "pets").replace(" ", "").split(","))
    at_ms = _instant(tx, args["at"], "at") if args.get("at") else now_ms
    home = tx.household()
    sender = tx.source(device)
    if all(device != known.id for known in home.devices):
        kind = args.get("kind") or ("" if sender is None else sender.kind)
        if kind not in load().device_kinds:
            told = f"is {kind!r}" if kind else f"is absent, and nothing was heard that says what {device} is"
            raise ImportRefused("command", f"must be one of {', '.join(load().device_kinds)}; {told}", field="kind")
        try:
            added = Device(device, kind, device.replace("_", " "))
        except ValueError as problem:
            raise ImportRefused("command", str(problem), field="device") from None
        tx.save_household(Household(zones=home.zones, devices=(added,)), valid_from_ms=0)
    replaced = _taken_over(tx, device, pets, at_ms)
    for old in replaced:
        tx.unbind(old, at_ms=at_ms)
    tx.bind(device, pets, valid_from_ms=at_ms)
    _answered(tx, device, now_ms)
    Rollups(load()).rebuild(tx, tx.household(), (device, *replaced))
    since = local_clock(at_ms, home.zones)
    served = f"{device} serves {', '.join(sorted(pets))} from {since:%Y-%m-%d %H:%M} on."
    return Done(f"{served}{_before(tx, home, device, at_ms)}")


def _before(tx: Transaction, home: Household, device: str, at_ms: int) -> str:
    """What a device that was heard before it served anybody still holds, and how to take it in."""
    heard_ms = tx.first_heard(device)
    if heard_ms is None or heard_ms >= at_ms or any(known.device == device for known in home.bindings):
        return ""
    first = local_clock(heard_ms, home.zones)
    return (
        f" What it sent since {first:%Y-%m-%d %H:%M} is no pet's; "
        f"to take it in as well, bind it again with --at {first:%Y-%m-%dT%H:%M}."
    )


def _answered(tx: Transaction, device: str, now_ms: int) -> None:
    """The owner said whose a sender is: it is not asked about again."""
    for source in tx.sources():
        if device in (source.id, source.device):
            tx.save_source(replace(source, replaces=None, answered_ms=now_ms))


def _replace(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    new, old = _need(args, "device"), _need(args, "old")
    home = tx.household()
    senders = [source for source in tx.sources() if new in (source.id, source.device)]
    if not senders or new == old:
        known = ", ".join(source.id for source in tx.sources() if source.replaces) or "none is asked about now"
        raise ImportRefused(
            "command",
            f"must be a sender that a profile heard ({known}) and another than the old, is {new!r}",
            field="device",
        )
    if all(device.id != old for device in home.devices):
        raise ImportRefused("command", f"must be a device of this home, is {old!r}", field="old")
    if home.bindings_at(new, now_ms):
        raise ImportRefused("command", f"must serve no pet yet; {new} serves one: bind it anew instead", field="device")
    moved = 0
    for source in senders:
        tx.save_source(replace(source, device=old, replaces=None, answered_ms=now_ms))
        moved += tx.rehome(source.id, old)
    Rollups(load()).rebuild(tx, tx.household(), (old,))
    return Done(f"{new} is {old} from now on; {moved} records it had sent are {old}'s too.")


def _key(tx: Transaction, args: dict[str, str], _now_ms: int) -> Done:
    device = _need(args, "device")
    keys = {}
    for name in ("irk", "bthome"):
        text = args.get(name, "").replace(":", "").replace(" ", "")
        if text and not re.fullmatch(r"[0-9a-fA-F]{32}", text):
            raise ImportRefused("command", "must be 32 hex digits (16 bytes)", field=name)
        keys[name] = bytes.fromhex(text) if text else None
    if keys == {"irk": None, "bthome": None}:
        raise ImportRefused("command", "must be given, is empty", field="irk or bthome")
    if not is_device_id(device):
        raise ImportRefused("command", f"must be 1 to 32 of a-z 0-9 _ -, is {device!r}", field="device")
    tx.save_radio_key(device, irk=keys["irk"], bthome=keys["bthome"])
    return Done(f"Kept the key of {device}: it is known under any address now.")


def _taken_over(tx: Transaction, device: str, pets: frozenset[str], at_ms: int) -> tuple[str, ...]:
    """Wearables of the same kind that these pets wear until the new one is put on."""
    home, kinds = tx.household(), load().device_kinds
    kind = next((known.kind for known in home.devices if known.id == device), "")
    if not kind or not kinds[kind].wearable:
        return ()
    return tuple(
        known.id
        for known in home.devices
        if known.kind == kind and known.id != device and home.bindings_at(known.id, at_ms) == pets
    )


def _answer_notice(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    return Done(answer_notice(tx, _need(args, "notice"), _need(args, "answer"), now_ms=now_ms))


def _forget(tx: Transaction, args: dict[str, str], now_ms: int) -> Done:
    return Done(forget(tx, _need(args, "kind"), _need(args, "id"), now_ms=now_ms))


COMMANDS: dict[str, Callable[[Transaction, dict[str, str], int], Done]] = {
    "household": _household,
    "surefeed": _surefeed,
    "history": _history,
    "product": _product,
    "passages": _passages,
    "purchases": _purchases,
    "bought": _bought,
    "log": _log,
    "loglines": _loglines,
    "marklines": _marklines,
    "food": _food,
    "note": _note,
    "wrong": _wrong,
    "undo": _undo,
    "bind": _bind,
    "replace": _replace,
    "key": _key,
    "answer_notice": _answer_notice,
    "forget": _forget,
}
