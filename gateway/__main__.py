"""The command line: `scentwalk COMMAND --db FILE --config FILE`.

Reads arguments, calls the house, prints. An error of ours is one sentence on standard error
and exit status 2; anything else is a defect and shows its trace.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.ask.answer import answer_json, answer_lines
from gateway.ask.ask import ask
from gateway.ask.question import frame_json
from gateway.ask.records import heading, open_record, record_text
from gateway.ask.said import say, verbatim, worded
from gateway.config import load as load_config
from gateway.errors import ConfigError, ImportRefused, ScentwalkError
from gateway.links.clock import SystemClock
from gateway.measure.days import local_day
from gateway.model import RecordRef
from gateway.ontology.kept import KeptAliases
from gateway.ontology.load import keeping, vocabulary_key
from gateway.ontology.wordings import wordings
from gateway.store import Snapshot, check_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateway.config import Config
    from gateway.dialogue import Answer
    from gateway.links.profile import Profile
    from gateway.store.reads import Reader

__all__ = ["main", "print_answer"]

_EPILOG = "Each command explains itself: scentwalk COMMAND --help"
_SOURCES_SHOWN = 3
_EXPORT_LEASE_S = 600.0
"""An export reads the whole file; a page's snapshot lives for seconds."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scentwalk", description="An in-home pet hub whose every answer can be checked.", epilog=_EPILOG
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--db", type=Path, metavar="FILE", help="the database file (default: the configuration's)")
    common.add_argument("--config", type=Path, metavar="FILE", help="the configuration file (TOML)")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[common], help=text, description=text)

    asking = add("ask", "Answer a question from what is stored.")
    asking.add_argument("question")
    asking.add_argument("--now", metavar="INSTANT", help="ask as of this ISO instant, such as 2026-07-14T22:00:00Z")
    asking.add_argument("--json", action="store_true", help="print the Answer JSON")
    asking.add_argument("--frame", action="store_true", help="print how the question was read, as Frame JSON")
    asking.add_argument("--explain", action="store_true", help="print the reading, the walk, the tree and what was cut")

    record = add("record", "Show the stored thing behind a citation.")
    record.add_argument("ref", metavar="REF", help="such as day:max.scratching/2026-07-08")

    _add_writing(add)
    _add_keeping(add)
    _add_bought(add)
    serving = add("serve", "Run the hub: broker link, learning, page.")
    serving.add_argument("--web-port", type=int, metavar="PORT", help="the page's port (default: the configuration's)")

    demo = add("demo", "Play a simulated household through the real path and answer its question.")
    demo.add_argument("--scenario", default="food_switch", metavar="NAME", help="a story of device_sim/scenarios")
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("--once", action="store_true", help="end after the answer instead of serving the page")
    demo.add_argument("--web-port", type=int, metavar="PORT", default=8080)
    demo.add_argument("--mqtt-port", type=int, metavar="PORT", default=1883)
    demo.add_argument("--truth", type=Path, metavar="FILE", help="where the simulator leaves its hidden truth")
    demo.add_argument("--json", action="store_true", help="print the Answer JSON instead of words")
    return parser


def _add_writing(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    importing = add("import", "Take in a file: the history of a feeder, a product label, purchases, a guide.")
    importing.add_argument("kind", choices=("surefeed", "product", "purchases", "passages", "history"))
    importing.add_argument("file", type=Path)
    importing.add_argument("--zone", help="surefeed: the home's IANA zone, such as America/Los_Angeles")
    importing.add_argument("--profile", metavar="ID", help="history: which profile reads it, or a FILE.toml with one")
    importing.add_argument("--topic", help="history: the topic it would have come by; it names the device")

    home = add("household", "Enter who lives here, or show it.")
    home.add_argument("action", choices=("import", "show"))
    home.add_argument("file", type=Path, nargs="?")

    log = add("log", "Write down what no device can see.")
    log.add_argument("--pet", required=True, help="the pet's id or name")
    log.add_argument("--what", required=True, help='such as "flea treatment", "vomited", "weight 12.4 kg"')
    log.add_argument(
        "--at", required=True, metavar="DATE", help="local date or date and time, such as 2026-07-03T08:00"
    )
    log.add_argument("--every", metavar="30d", help="how long it lasts or how often it repeats")

    note = add("note", "Keep a vet's note, word for word.")
    note.add_argument("--pet", required=True)
    note.add_argument("--at", required=True, metavar="DATE")
    note.add_argument("file", type=Path)

    wrong = add("wrong", "Mark a link or a supposed cause as wrong; it can be undone.")
    wrong.add_argument("what", help="an edge: reference, or a hypothesis as the answer shows it")
    wrong.add_argument("--reason", required=True)
    undo = add("undo", "Take a mark back.")
    undo.add_argument("number", type=int)


def _add_keeping(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    forgetting = add("forget", "Take a device, a document or a pet out of everything, as if it had never been there.")
    forgetting.add_argument("kind", choices=("device", "document", "pet"))
    forgetting.add_argument("id", nargs="?", help="which one; without it, those there are")
    forgetting.add_argument("--show", action="store_true", help="say what would go, change nothing (so without --yes)")
    forgetting.add_argument("--yes", action="store_true", help="do it; there is no undo")

    backup = add("backup", "Write one state of the database to a file, while the hub runs as well.")
    backup.add_argument("file", type=Path)
    restoring = add("restore", "Make the database what a backup says.")
    restoring.add_argument("file", type=Path)
    exporting = add("export", "Write every event and day as tables, in folders by hub and date.")
    exporting.add_argument("folder", type=Path)
    exporting.add_argument("--format", choices=("csv", "jsonl", "parquet"), default="csv")
    exporting.add_argument("--hub", default="home", help="the hub's name in the folders")
    add("check", "Check every page, reference and checksum of the database.")

    device = add("device", "List devices, let one serve other pets, say which one replaced which, give its key.")
    device.add_argument("action", choices=("list", "bind", "replace", "key"))
    device.add_argument("device", nargs="?")
    device.add_argument("old", nargs="?", help="replace: the device it is from now on")
    device.add_argument("--pets", help="ids, separated by commas")
    device.add_argument("--kind", help="for a device not known yet: food_bowl, tracker, ...")
    device.add_argument("--at", metavar="DATE", help="from when on (default: now)")
    device.add_argument("--irk", metavar="HEX", help="key: its identity key, 32 hex digits")
    device.add_argument("--bthome", metavar="HEX", help="key: its BTHome key, 32 hex digits")

    profile = add("profile", "List profiles of other makers' devices, or check a file with one.")
    profile.add_argument("action", choices=("list", "check"))
    profile.add_argument("file", type=Path, nargs="?")
    profile.add_argument("--topic", metavar="T", help="check: where the sample messages come")
    profile.add_argument(
        "--payload", metavar="TEXT", action="append", help="check: a sample message; more than one come in this order"
    )
    profile.add_argument(
        "--payload-file",
        type=Path,
        metavar="P",
        action="append",
        help="check: a file with a sample message, byte for byte",
    )

    again = add("reprocess", "Derive records again from what was heard, after a profile changed.")
    again.add_argument("--all", action="store_true", help="also what the present versions have read")


def _add_bought(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    bought = add("bought", "Write down a purchase: what is at home from that day on, not who is given it.")
    bought.add_argument("product", help='as it stands on the pack, such as "Salmon Feast"')
    bought.add_argument("--at", required=True, metavar="DATE", help="local date, such as 2026-07-03")
    bought.add_argument("--code", help="the number under the bar code")
    bought.add_argument("--quantity", metavar="NUMBER", help="how many (default: 1)")
    bought.add_argument("--unit", help="of what, such as bags, kg")
    bought.add_argument("--shop")
    bought.add_argument("--price", help="as on the receipt")
    bought.add_argument("--kind", help="what kind of thing: food, treat, medicine, flea treatment, litter, ...")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # the same bytes, and no error, under LC_ALL=C
    options = _parser().parse_args(arguments)
    try:
        config = load_config(options.config)
        return _COMMANDS[options.command](options, config)
    except ScentwalkError as problem:
        print(f"scentwalk: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1


# --- reading -------------------------------------------------------------------------------------


def _instant(text: str, option: str) -> int:
    """An ISO instant with its offset, in ms UTC."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{option} must be an ISO instant such as 2026-07-14T22:00:00Z, is {text!r}") from None
    if instant.tzinfo is None:
        raise ConfigError(f"{option} must carry Z or an offset, as 2026-07-14T22:00:00Z does, is {text!r}")
    delta = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def _now_ms(reader: Reader, given: str | None) -> int:
    """The instant asked about: the one given, else the system's clock, else the newest recorded."""
    if given is not None:
        return _instant(given, "--now")
    if reader.meta("clock_source") == "system":
        return SystemClock().now_ms()
    newest = reader.newest_ms()
    return SystemClock().now_ms() if newest is None else newest


def _database(options: argparse.Namespace, config: Config) -> Path:
    given: Path | None = options.db
    return config.database.path if given is None else given


def _opened(options: argparse.Namespace, config: Config) -> Snapshot:
    path = _database(options, config)
    check_readable(path)
    return Snapshot(path)


def _ask(options: argparse.Namespace, config: Config) -> int:
    with _opened(options, config) as reader, _kept_names(reader):
        answer = ask(options.question, reader, now_ms=_now_ms(reader, options.now), budget=config.answer.token_budget)
    if options.frame:
        print(json.dumps(frame_json(answer.question), ensure_ascii=False))
    elif options.json:
        print(json.dumps(answer_json(answer), ensure_ascii=False, indent=2))
    else:
        print_answer(answer, explain=options.explain)
    return 0


def _kept_names(reader: Reader) -> AbstractContextManager[None]:
    """The names the hub keeps in the file, where they are of this vocabulary; else they are built anew."""
    if reader.aliases_key() != vocabulary_key():
        return nullcontext()
    return keeping(KeptAliases(reader.aliases_beginning, reader.aliases_in))


def print_answer(answer: Answer, *, explain: bool = False) -> None:
    """The answer as an owner reads it in a terminal, each citation with the records it opens."""
    print("\n\n".join(answer_lines(answer)))
    cited = [claim for claim in answer.claims if claim.refs]
    table = wordings(answer.language)
    if cited:
        print(f"\n{worded(say('Open a source with: {command}', command=verbatim('scentwalk record REF')), table)}")
        for claim in cited:
            more = len(claim.refs) - _SOURCES_SHOWN
            shown = "  ".join(ref.text for ref in claim.refs[:_SOURCES_SHOWN])
            print(f"  [{claim.cite}] {shown}{worded(say('  and {count} more', count=more), table) if more > 0 else ''}")
    local = verbatim(f"{datetime.fromtimestamp(answer.as_of_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC")
    print(f"\n{worded(say('As of {when}, home in {zone}.', when=local, zone=verbatim(answer.zone)), table)}")
    if explain:
        print("\n".join(("", "How this answer came about", *(f"  {line}" for line in answer.explain))))


def _record(options: argparse.Namespace, config: Config) -> int:
    try:
        ref = RecordRef(options.ref)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    with _opened(options, config) as reader:
        record = open_record(reader, ref)
        print("\n".join(record_text(record, [heading(reader, part) for part in record.parts])))
    return 0


# --- writing -------------------------------------------------------------------------------------


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ImportRefused(str(path), f"must be readable, but {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ImportRefused(str(path), f"must be UTF-8 text, is not at byte {problem.start}") from None


def _guide_of(path: Path) -> str:
    from gateway.knowledge.documents import read_document  # noqa: PLC0415  # as below

    try:
        return read_document(path.name, path.read_bytes())
    except OSError as problem:
        raise ImportRefused(str(path), f"must be readable, but {problem.strerror}") from None


def _write(options: argparse.Namespace, config: Config, command: str, **args: str | None) -> int:
    from gateway.app import run_command_anywhere  # noqa: PLC0415  # a question must not wait for the page's imports

    given = {name: value for name, value in args.items() if value is not None}
    text, opens = run_command_anywhere(_database(options, config), command, given)
    print(text if opens is None else f"{text}\nOpen it with: scentwalk record '{opens}'")
    return 0


def _import(options: argparse.Namespace, config: Config) -> int:
    if options.kind == "surefeed" and options.zone is None:
        raise ConfigError("import surefeed must be given --zone, such as America/Los_Angeles")
    text = _guide_of(options.file) if options.kind == "passages" else _text_of(options.file)
    if options.kind == "history":
        return _import_history(options, config, text)
    return _write(options, config, options.kind, text=text, source=options.file.name, zone=options.zone)


def _import_history(options: argparse.Namespace, config: Config, text: str) -> int:
    if options.profile is None or options.topic is None:
        raise ConfigError("import history must be given --profile ID and --topic TOPIC")
    from gateway.links.profileset import check_file, shipped  # noqa: PLC0415  # as above

    path = shipped().get(options.profile, Path(options.profile))
    check_file(path)
    return _write(
        options,
        config,
        "history",
        text=text,
        source=options.file.name,
        profile=_text_of(path),
        profile_source=path.name,
        topic=options.topic,
    )


def _household(options: argparse.Namespace, config: Config) -> int:
    if options.action == "import":
        if options.file is None:
            raise ConfigError("household import must be given a FILE.toml")
        return _write(options, config, "household", text=_text_of(options.file), source=options.file.name)
    with _opened(options, config) as reader:
        home = reader.household()
    for zone in home.zones:
        print(f"zone    {zone.zone}")
    for pet in home.pets:
        print(f"pet     {pet.id}: {pet.name}, {pet.species}{f', {pet.breed}' if pet.breed else ''} ({pet.status})")
    for food in home.foods:
        print(f"food    {food.id}: {food.name}{f', product {food.code}' if food.code else ''}")
    return 0


def _log(options: argparse.Namespace, config: Config) -> int:
    return _write(options, config, "log", pet=options.pet, what=options.what, at=options.at, every=options.every)


def _bought(options: argparse.Namespace, config: Config) -> int:
    names = ("product", "at", "code", "quantity", "unit", "shop", "price", "kind")
    return _write(options, config, "bought", **{name: getattr(options, name) for name in names})


def _note(options: argparse.Namespace, config: Config) -> int:
    return _write(options, config, "note", pet=options.pet, at=options.at, text=_text_of(options.file))


def _wrong(options: argparse.Namespace, config: Config) -> int:
    name = "ref" if options.what.startswith("edge:") else "hypothesis"
    return _write(options, config, "wrong", **{name: options.what, "reason": options.reason})


def _undo(options: argparse.Namespace, config: Config) -> int:
    return _write(options, config, "undo", number=str(options.number))


def _forget(options: argparse.Namespace, config: Config) -> int:
    from gateway.forget import can_forget, would_forget  # noqa: PLC0415  # as above

    if options.yes and (options.show or options.id is None):
        raise ConfigError("forget --yes must be given an ID, and no --show")
    if options.yes:
        return _write(options, config, "forget", kind=options.kind, id=options.id)
    with _opened(options, config) as reader:
        if options.id is None:
            known = can_forget(reader, options.kind)
            print("\n".join(f"{name}: {words}" for name, words in known) or f"There is no {options.kind} on file.")
            return 0
        print("\n".join(would_forget(reader, options.kind, options.id)))
    print("Nothing was changed. To do it, add --yes; there is no undo.")
    return 0


def _profile(options: argparse.Namespace, config: Config) -> int:
    from gateway.links.profileset import check_file, doubts, load_profiles, shipped  # noqa: PLC0415  # as above

    if options.action == "check":
        if options.file is None:
            raise ConfigError("profile check must be given a FILE.toml")
        made = check_file(options.file)
        print(f"{made.id}, version {made.version}: {made.name}. Nothing is wrong with it.")
        for topic in made.match.topics:
            print(f"  listens to {topic}")
        for doubt in doubts(made):
            print(f"  is it meant? {doubt}")
        return _try_out(options, config, made)
    used = load_profiles(enabled=config.profiles.enabled, folder=config.profiles.path)
    known = {name: check_file(path) for name, path in shipped().items()}
    for name, made in known.items():
        print(f"{name}: {made.name}, {'used' if used.get(name) == made else 'not used'}")
    for made in used.profiles:
        if known.get(made.id) != made:
            print(f"{made.id}: {made.name}, your own, version {made.version}")
    for trouble in used.troubles:
        print(trouble)
    return 0


def _try_out(options: argparse.Namespace, config: Config, made: Profile) -> int:
    """Sample messages through a profile; status 1 where one cannot be read."""
    from gateway.tryout import tried_lines  # noqa: PLC0415  # as above

    samples = [text.encode("utf-8", "surrogateescape") for text in options.payload or ()]
    try:
        samples += [path.read_bytes() for path in options.payload_file or ()]
    except OSError as problem:
        raise ConfigError(f"--payload-file must be readable, but {problem.strerror}: {problem.filename}") from None
    if not samples:
        if options.topic is not None:
            raise ConfigError("--topic must come with --payload or --payload-file")
        return 0
    home = None
    if _database(options, config).exists():
        with _opened(options, config) as reader:
            home = reader.household()
    lines, is_read = tried_lines(made, samples, topic=options.topic, home=home, now_ms=SystemClock().now_ms())
    print("\n".join(lines))
    return 0 if is_read else 1


def _reprocess(options: argparse.Namespace, config: Config) -> int:
    from gateway.app import run_command_anywhere  # noqa: PLC0415  # as above
    from gateway.links.profileset import load_profiles  # noqa: PLC0415  # as above

    text, _ = run_command_anywhere(
        _database(options, config),
        "reprocess",
        {"all": "yes" if options.all else "no"},
        profiles=lambda: load_profiles(enabled=config.profiles.enabled, folder=config.profiles.path),
    )
    print(text)
    return 0


def _told_of_device(options: argparse.Namespace, config: Config) -> int:
    """What an owner says of a device: whose it is, what it replaced, its key."""
    if options.device is None:
        raise ConfigError(f"device {options.action} must be given a DEVICE")
    if options.action == "replace":
        if options.old is None:
            raise ConfigError("device replace must be given the NEW and the OLD device")
        return _write(options, config, "replace", device=options.device, old=options.old)
    if options.action == "key":
        return _write(options, config, "key", device=options.device, irk=options.irk, bthome=options.bthome)
    if options.pets is None:
        raise ConfigError("device bind must be given a DEVICE and --pets ID[,ID...]")
    return _write(options, config, "bind", device=options.device, pets=options.pets, kind=options.kind, at=options.at)


def _device(options: argparse.Namespace, config: Config) -> int:
    if options.action != "list":
        return _told_of_device(options, config)
    with _opened(options, config) as reader:
        home, now_ms = reader.household(), _now_ms(reader, None)
        heard, senders = reader.heard_devices(), reader.sources()
    known = {device.id for device in home.devices}
    for device in home.devices:
        pets = ", ".join(sorted(home.bindings_at(device.id, now_ms))) or "no pet"
        print(
            f"{device.id}: {device.name} ({device.kind}), serves {pets}{'' if device.id in heard else ', never heard'}"
        )
    for stranger in sorted(set(heard) - known):
        kind = "" if stranger in {sender.id for sender in senders} else " --kind KIND"
        bind = f"scentwalk device bind {stranger} --pets ID{kind}"
        print(f"{stranger}: heard, but serves no pet yet; its records are kept. {bind}")
    for sender in senders:
        if sender.replaces is not None:
            print(
                f"Is {sender.id} a replacement of {sender.replaces}? Then: scentwalk device replace {sender.id} "
                f"{sender.replaces}. If it is another one: scentwalk device bind {sender.id} --pets ..."
            )
    return 0


# --- the file ------------------------------------------------------------------------------------


def _backup(options: argparse.Namespace, config: Config) -> int:
    from gateway.store.backup import backup  # noqa: PLC0415  # as above

    backup(_database(options, config), options.file)
    print(f"Backed up to {options.file}.")
    return 0


def _restore(options: argparse.Namespace, config: Config) -> int:
    return _write(options, config, "restore", file=str(options.file.resolve()))


def _export(options: argparse.Namespace, config: Config) -> int:
    from gateway.store.export import export  # noqa: PLC0415  # as above

    path = _database(options, config)
    check_readable(path)
    with Snapshot(path, lease_s=_EXPORT_LEASE_S) as reader:
        zones = reader.household().zones
        written = export(
            reader, options.folder, kind=options.format, hub=options.hub, date_of=lambda at_ms: local_day(at_ms, zones)
        )
    print(f"Wrote {len(written)} files below {options.folder}.")
    return 0


def _check(options: argparse.Namespace, config: Config) -> int:
    from gateway.store.verify import verify  # noqa: PLC0415  # as above

    report = verify(_database(options, config))
    print("\n".join(report.lines()))
    return 0 if report.is_sound else 1


# --- running -------------------------------------------------------------------------------------


def _serve(options: argparse.Namespace, config: Config) -> int:
    import asyncio  # noqa: PLC0415

    from gateway.app import serve  # noqa: PLC0415  # as above

    asyncio.run(serve(config, _database(options, config), web_port=options.web_port, say=_say))
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _demo(options: argparse.Namespace, config: Config) -> int:
    import asyncio  # noqa: PLC0415

    from gateway.demo import DemoOptions, play_demo  # noqa: PLC0415  # as above

    asyncio.run(
        play_demo(
            DemoOptions(
                scenario=options.scenario,
                seed=options.seed,
                once=options.once,
                database=options.db,
                web_port=options.web_port,
                mqtt_port=options.mqtt_port,
                truth=options.truth,
                budget=config.answer.token_budget,
                show=_show_json if options.json else print_answer,
                say=_say_aside if options.json else _say,
            )
        )
    )
    return 0


def _say_aside(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show_json(answer: Answer) -> None:
    print(json.dumps(answer_json(answer), ensure_ascii=False, indent=2))


_COMMANDS = {
    "ask": _ask,
    "record": _record,
    "import": _import,
    "household": _household,
    "log": _log,
    "bought": _bought,
    "note": _note,
    "wrong": _wrong,
    "undo": _undo,
    "forget": _forget,
    "device": _device,
    "profile": _profile,
    "reprocess": _reprocess,
    "backup": _backup,
    "restore": _restore,
    "export": _export,
    "check": _check,
    "serve": _serve,
    "demo": _demo,
}

if __name__ == "__main__":
    sys.exit(main())
