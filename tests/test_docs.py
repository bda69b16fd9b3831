"""Holds what is written against what the code does: nothing undocumented, every example runs.

A fence whose info string says ``run`` is an example that is run here, in a temporary home made
of the examples themselves; ``household``, ``product``, ``guide``, ``note``, ``scenario``, ``wire1``,
``frame`` and ``answer`` fences are read by the code that reads such things.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import importlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from device_sim import story as stories
from device_sim.household import build_world
from device_sim.play import digest
from firmware_bridge import wire
from gateway import config, errors
from gateway.__main__ import _parser, main
from gateway.ask.question import frame_json
from gateway.ask.replies import _REPLIES
from gateway.commands import COMMANDS
from gateway.dialogue import EvidenceClass, NoticeKind, Question
from gateway.knowledge import household
from gateway.links.ingest import COUNTERS
from gateway.ontology.load import load
from gateway.store import schema
from tests.architecture_map import mapped, modules
from tests.readme import README, block, printed_answer, with_block
from tests.test_architecture import LAYERS

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ("owner", "maker", "graph", "profiles")
WRITTEN = (
    *(Path("docs") / f"{name}.md" for name in GUIDES),
    *(Path(name) for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "deploy/README.md")),
)
HANG_GUARD_S = 120
_FENCE = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_RULER = re.compile(r"^\|[-|]+\|$")
_BAR = re.compile(r"(?<!\\)\|")


def text_of(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def fences(text: str, info: str) -> list[str]:
    return [body for told, body in _FENCE.findall(text) if told == info]


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of the same or a higher level."""
    level = heading.split(" ", maxsplit=1)[0]
    found = re.search(
        rf"^{re.escape(heading)}$\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", _unfenced(text), re.DOTALL | re.MULTILINE
    )
    assert found is not None, f"there must be a heading {heading!r}"
    return found[1]


def _unfenced(text: str) -> str:
    return _FENCE.sub("", text)


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, heads and rulers left out."""
    lines = text.splitlines()
    found = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("|") and not _RULER.match(line) and not _RULER.match(below):
            found.append([cell.strip() for cell in _BAR.split(line)[1:-1]])
    return found


def names(text: str) -> list[str]:
    """What the first cells of the tables name, without their backquotes."""
    return [name for row in rows(text) for name in re.sub(r"[`\[\]]", "", row[0]).split(", ")]


# --- nothing is undocumented ----------------------------------------------------------------------


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def test_every_command_and_option_is_documented():
    told = section(text_of("owner"), "## Commands")
    common = told.split("\n### ")[0]
    missing = []
    for name, parser in commands().items():
        about = section(text_of("owner"), f"### {name}")
        for action in parser._actions:
            words = [*action.option_strings, *(action.choices or ())]
            missing += [
                f"{name}: {word}" for word in words if word not in about + common and word not in ("-h", "--help")
            ]
    assert missing == []
    headings = re.findall(r"^### (.+)$", told, re.MULTILINE)
    assert headings == list(commands())


def test_every_configuration_key_is_documented_with_its_default_and_its_rule():
    told = {row[0].strip("`"): row for row in rows(section(text_of("owner"), "## Configuration"))}
    expected = {}
    for name, made in config._SECTIONS.items():
        for key, rule in config._RULES[name].items():
            default = getattr(made(), key)
            shown = "absent" if default is None else f"`{default}`"
            expected[f"{name}.{key}"] = [f"`{name}.{key}`", shown, rule.expected]
    assert {key: row[:3] for key, row in told.items()} == expected


def test_a_configuration_key_is_called_unused_exactly_while_nothing_reads_it():
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "gateway").rglob("*.py") if path.name != "config.py")
    for row in rows(section(text_of("owner"), "## Configuration")):
        key = row[0].strip("`")
        assert ("not used yet" in row[3]) == (re.search(rf"\b{re.escape(key)}\b", code) is None), key


def test_every_error_is_documented():
    assert sorted(names(section(text_of("owner"), "## Errors you may see"))) == sorted(errors.__all__)


def test_every_key_of_a_household_file_is_documented_and_in_the_example():
    told = section(text_of("owner"), "## Your own home")
    (example,) = fences(text_of("owner"), "toml household")
    written = tomllib.loads(example)
    top, *tables = re.split(r"^`\[\[(\w+)\]\]`:$", told, flags=re.MULTILINE)
    assert set(names(top)) == household._TOP - set(household._KEYS)
    documented = dict(zip(tables[::2], map(names, tables[1::2]), strict=True))
    assert {name: set(keys) for name, keys in documented.items()} == household._KEYS
    assert {name: set().union(*written[name]) for name in household._KEYS} == household._KEYS
    kinds = next(row for row in rows(tables[2 * list(documented).index("device") + 1]) if row[0] == "`kind`")
    assert set(re.findall(r"`(\w+)`", kinds[1])) == set(load().device_kinds)


def test_every_wire_kind_is_documented_field_by_field():
    told = section(text_of("maker"), "## Kinds of records")
    for code, kind in wire.KINDS.items():
        fields = [row[:4] for row in rows(section(told, f"### {code} {kind.name}"))]
        assert fields == [[field.name, field.unit, str(field.low), str(field.high)] for field in kind.fields], kind.name
        unknown = [field.unknown for field in kind.fields if field.unknown is not None]
        assert all(str(value) in section(told, f"### {code} {kind.name}") for value in unknown)
    assert sorted(re.findall(r"^### (\d+) ", told, re.MULTILINE), key=int) == [str(code) for code in wire.KINDS]
    flags = {int(row[0]) for row in rows(section(told, "### Quality"))}
    assert flags == {wire.UNSETTLED, wire.TEMPERATURE_MOVED, wire.ZERO_DOUBTFUL, wire.TOO_FAST}


def test_every_reason_counter_topic_and_limit_of_the_wire_is_documented():
    maker = text_of("maker")
    assert [name for name in names(section(maker, "## Limits")) if name in wire.REASONS] == list(wire.REASONS)
    assert set(names(section(maker, "## Checking a device against a hub"))) == set(COUNTERS)
    topics = section(maker, "## Topics")
    for topic in (wire.up_topic("d"), wire.mark_topic("d"), wire.link_topic("d")):
        assert f"`{topic.replace('/d/', '/DEVICE/')}`" in topics
    limits = section(maker, "## Limits") + section(maker, "## A message")
    for limit in (wire.MAX_MESSAGE_BYTES, wire.MAX_RECORDS, wire.MAX_DEPTH, wire.MS_MAX, wire.U32_MAX):
        assert re.search(rf"\b{limit}\b", limits), limit


def test_every_setting_of_a_device_is_documented_and_the_example_has_what_a_bowl_needs():
    """Read from the source: an entry point imports what only a board has."""
    asked: set[str] = set()
    needed: dict[str, set[str]] = {}
    for name in ("bowl", "tracker", "bridge", "board", "node"):
        tree = ast.parse((ROOT / "firmware_bridge" / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                needed[name] = needed.get(name, set()) | {ast.literal_eval(key) for key in node.value.keys if key}
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "settings":
                asked.add(ast.literal_eval(node.slice))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "settings.get":
                asked.add(ast.literal_eval(node.args[0]))
    told = section(text_of("maker"), "## Building a bowl, a tracker, a bridge")
    documented = {row[0].strip("`"): row[1] for row in rows(told) if row[0].startswith("`") and ".py" not in row[0]}
    assert set(documented) == asked | set().union(*needed.values())
    for name, keys in needed.items():
        assert all("all" in documented[key] or name in documented[key] for key in keys), name
    (example,) = fences(text_of("maker"), "json device bowl")
    assert set(json.loads(example)) == needed["bowl"]


def test_every_simulator_option_is_documented():
    from device_sim.__main__ import _parser as simulator  # noqa: PLC0415  # two parsers, one name

    told = {row[0].strip("`").split(" ")[0] for row in rows(section(text_of("maker"), "## Simulating a household"))}
    options = {option for action in simulator()._actions for option in action.option_strings}
    assert told == options - {"-h", "--help"}


def _asked_of(path: str, function: str, name: str) -> set[str]:
    """The keys a function asks a mapping for: ``name["x"]``, ``name.get("x")``, ``"x" in name``."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    (body,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    found = set()
    for node in ast.walk(body):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == name:
            found.add(ast.literal_eval(node.slice))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.get":
            found.add(ast.literal_eval(node.args[0]))
        if isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == name:
            found.add(ast.literal_eval(node.left))
    return found


TABLES = {
    "feeding": stories.Feeding,
    "effect": stories.Effect,
    "log": stories.LogEntry,
    "gap": stories.Gap,
    "swap": stories.Swap,
    "fast": stories.Fast,
    "wrong": stories.Wrong,
    "outage": stories.Outage,
}


def test_every_table_and_key_of_a_scenario_is_documented():
    told = section(text_of("maker"), "## Writing a scenario")
    top, pet, food, rest, redraw, expect, claim = re.split(
        r"^(?:`\[\[pet\]\]`|`\[\[food\]\]`|The rest|`\[redraw\]`|`\[expect\]` says|`\[\[expect.claim\]\]`)[^|]*?:$",
        told,
        flags=re.MULTILINE,
    )
    asked = _asked_of("device_sim/story.py", "_read", "told")
    assert set(names(top)) == asked - set(TABLES) - {"pet", "food", "redraw", "expect"}
    assert names(pet) == [field.name for field in dataclasses.fields(stories.Pet)]
    assert names(food) == [field.name for field in dataclasses.fields(stories.Food)]
    documented = {re.sub(r"[`\[\]]", "", row[0]): re.findall(r"`(\w+)`", row[1]) for row in rows(rest)}
    assert documented == {name: [field.name for field in dataclasses.fields(made)] for name, made in TABLES.items()}
    assert set(TABLES) <= asked
    assert set(names(redraw)) == _asked_of("device_sim/cast.py", "redraw", "changes") | {"foods"}
    played = [stories.load_story(name) for name in stories.story_names()]
    assert set(names(expect)) == {key for story in played for key in story.expect if key not in ("claim", "never")}
    used = {key for story in played for kind in ("claim", "never") for row in story.expect.get(kind, ()) for key in row}
    assert used <= set(names(claim))


def test_every_vertex_kind_relation_and_witness_is_documented_as_the_ontology_has_it():
    graph, known = text_of("graph"), load()
    table = tomllib.loads((ROOT / "gateway/ontology/data/graph.toml").read_text("utf-8"))
    walked, cited = section(graph, "## Vertices").split("Kinds that may only be cited")
    assert names(walked) == [name for name, kind in table["vertex_kind"].items() if kind["walk"]]
    assert names(cited) == [name for name, kind in table["vertex_kind"].items() if not kind["walk"]]
    told = {row[0].strip("`"): row[1:6] for row in rows(section(graph, "## Relations"))}
    expected = {
        name: [
            ", ".join(one.tails),
            ", ".join(one.heads),
            "yes" if one.host else "",
            "yes" if one.walkable else "no",
            "yes" if one.dated else "",
        ]
        for name, one in known.relations.items()
    }
    assert told == expected
    trust = {row[0]: float(row[1]) for row in rows(section(graph, "## Evidence and belief"))}
    assert trust == dict(known.reliability)


def test_every_table_intent_property_and_notice_is_documented():
    graph = text_of("graph")
    created = re.findall(r"CREATE TABLE (\w+)", (ROOT / "gateway/store/schema.py").read_text("utf-8"))
    assert names(section(graph, "## The file")) == created
    frame, answer = section(graph, "## Frame JSON"), section(graph, "## Answer JSON")
    assert set(_REPLIES) <= set(re.findall(r"`(\w+)`", frame))
    assert set(load().properties) <= set(re.findall(r"`(\w+)`", frame))
    assert {kind.value for kind in NoticeKind} | set(EvidenceClass) <= set(re.findall(r"`(\w+)`", answer))
    kinds = [row[0] for row in rows(section(graph, "## Records and references"))]
    assert sorted(kinds) == sorted(re.findall(r"'(\w+)'", re.search(r"kind IN \(([^)]*)\)", schema._STEP_1[0])[1]))


def test_a_command_an_owner_can_give_is_named_where_owners_look():
    told = text_of("owner") + (ROOT / "README.md").read_text("utf-8")
    by_another_name = {"loglines": "log", "marklines": "wrong", "food": "Add a food", "bind": "device bind"}
    assert [name for name in COMMANDS if by_another_name.get(name, name) not in told] == []


def test_the_words_that_are_explained_are_words_that_answers_use():
    told = section(text_of("owner"), "## What the words of an answer mean").lower()
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "gateway/ask").glob("*.py")).lower()
    words = (
        "usual",
        "clearly",
        "slightly",
        "as usual",
        "likely",
        "not clear",
        "i can't tell",
        "too early",
        "not recorded",
    )
    words += (
        "worn",
        "from the bowl",
        "closest recorded change",
        "put together by the hub",
        "a pattern, not a diagnosis",
    )
    words += ("not on file", "in both foods")
    assert [word for word in words if word not in told or word not in code] == []


# --- the house ------------------------------------------------------------------------------------

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def test_the_map_names_every_module_and_nothing_else():
    there = [path.relative_to(ROOT).as_posix() for path in modules(ROOT)]
    assert list(mapped(ARCHITECTURE)) == there, "make map writes it"


def test_the_diagram_is_the_table_of_layers():
    (drawn,) = fences(ARCHITECTURE, "text layers")
    assert [frozenset(row.split()) for row in drawn.splitlines()] == list(reversed(LAYERS))


def test_every_test_that_is_named_exists():
    named = re.findall(r"`(test_\w+)::(test_\w+)`", ARCHITECTURE)
    assert len(named) > 40
    for file, test in named:
        code = (ROOT / "tests" / f"{file}.py").read_text("utf-8")
        assert re.search(rf"^(async )?def {test}\(", code, re.MULTILINE), f"{file}::{test}"


def test_every_function_of_the_journeys_exists():
    text = section(ARCHITECTURE, "## An event's journey") + section(ARCHITECTURE, "## A question's journey")
    named = re.findall(r"`((?:gateway|firmware_bridge)\.[\w.]+)`", text)
    assert len(named) > 30
    for name in named:
        module, _, leaf = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            assert hasattr(importlib.import_module(module), leaf), name


def test_every_file_that_is_named_exists():
    for path in WRITTEN:
        text = (ROOT / path).read_text("utf-8")
        for name in re.findall(r"`((?:gateway|firmware_bridge|device_sim|tests|deploy)/[\w./-]+)`", text):
            assert (ROOT / name).exists(), f"{path}: {name}"


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _unfenced(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", WRITTEN, ids=str)
def test_every_link_inside_the_repository_resolves(path):
    text = (ROOT / path).read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", " ".join(_unfenced(text).split("\n"))):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (ROOT / path).parent / file if file else ROOT / path
        assert found.exists(), target
        if anchor:
            assert anchor in _anchors(found.read_text("utf-8")), target


@pytest.mark.parametrize("path", WRITTEN, ids=str)
def test_no_document_names_a_host_or_a_workplace(path):
    text = (ROOT / path).read_text("utf-8")
    allowed = {"127.0.0.1", "localhost"}
    assert [host for host in re.findall(r"\w+://([\w.-]+)", text) if host not in allowed] == []
    addresses = [one for one in re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text) if one not in allowed]
    assert addresses == []
    assert re.search(r"/(work|home|root|tmp|Users)/|\.library|\.\./shared", text) is None


def test_every_picture_is_small_and_embedded_somewhere():
    told = "".join((ROOT / path).read_text("utf-8") for path in WRITTEN)
    pictures = sorted((ROOT / "docs/img").glob("*.png"))
    assert len(pictures) == 6
    for picture in pictures:
        assert picture.stat().st_size <= 200_000
        width = int.from_bytes(picture.read_bytes()[16:20], "big")
        assert 300 <= width <= 1_100
    assert all(f"img/{name}.png" in told for name in ("answer-1100", "trend-1100", "front-360"))


def test_only_the_block_between_the_markers_is_rewritten():
    before = README.read_text("utf-8")
    after = with_block(before, "new\n")
    assert block(after) == "new\n"
    assert with_block(after, block(before)) == before


@pytest.mark.story
@pytest.mark.timeout(900)
def test_the_readme_holds_the_answer_that_the_demo_prints(tmp_path):
    assert block(README.read_text("utf-8")) == printed_answer(tmp_path / "home.db"), "make readme writes it"


# --- examples run ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Home:
    """The temporary home of the examples: its folder, and where ``scentwalk`` is."""

    folder: Path
    env: dict[str, str]

    def run(self, *command: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=HANG_GUARD_S,
            check=False,
            **options,
        )

    def shell(self, script: str) -> str:
        done = self.run("bash", "-euo", "pipefail", "-c", script)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def follow(self, example: str) -> str:
        """An example line by line; our own command in this process, which is ten times faster."""
        printed = io.StringIO()
        for line in example.splitlines():
            words = shlex.split(line)
            if words[0] != "scentwalk":
                printed.write(self.shell(line))
                continue
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                assert main(words[1:]) == 0, line
        return printed.getvalue()


FILES = {
    "home.toml": "toml household",
    "acme.json": "json product",
    "guide.md": "markdown guide",
    "note.txt": "text note",
}


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory) -> tuple[Home, list[str]]:
    """The owner's guide followed from top to bottom, and what each of its examples printed."""
    folder = tmp_path_factory.mktemp("examples")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    home = Home(folder, {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)})
    owner = text_of("owner")
    for name, info in FILES.items():
        (body,) = fences(owner, info)
        (folder / name).write_text(body, "utf-8")
    return home, [home.follow(example) for example in fences(owner, "sh run")]


def test_the_owners_guide_can_be_followed_from_top_to_bottom(lived_in):
    home, printed = lived_in
    told = "\n".join(printed)
    for words in ("Kept 2 pets, 2 devices and 1 foods", "max: Max, dog", "chicken meal"):
        assert words in told
    assert "Marked as wrong (mark 1)" in told
    assert "Mark 1 is taken back" in told
    with closing(sqlite3.connect(home.folder / "backup.db")) as copy:
        assert copy.execute("SELECT count(*) FROM pet").fetchone() == (2,)


def test_the_queries_of_the_graph_guide_find_rows(lived_in):
    home, _ = lived_in
    queries = fences(text_of("graph"), "sql run")
    assert len(queries) == 2
    with closing(sqlite3.connect(f"file:{home.folder / 'home.db'}?mode=ro", uri=True)) as db:
        found = [db.execute(query).fetchall() for query in queries]
    assert any(row[:3] == ("pet:max", "ate", "food:acme_chicken") for row in found[0])
    assert all(row[0].startswith("passage:") and row[5] for row in found[1])
    assert len(found[1]) == 5


def test_the_json_examples_have_the_shape_of_real_answers(lived_in):
    home, _ = lived_in
    done = home.run("scentwalk", "ask", "Does the food contain chicken?", "--json", "--db", "home.db")
    real = json.loads(done.stdout)
    graph = text_of("graph")
    (answer,), (frame,) = (list(map(json.loads, fences(graph, info))) for info in ("json answer", "json frame"))
    assert list(answer) == list(real)
    assert list(frame) == list(answer["frame"]) == list(real["frame"])
    assert list(answer["claims"][0]) == list(real["claims"][0])
    assert answer["budget"].keys() == real["budget"].keys()
    told = section(graph, "## Answer JSON").split("A claim:")
    assert [names(part) for part in told] == [list(real), list(real["claims"][0])]
    assert names(section(graph, "## Frame JSON")) == list(frame)
    asked = Question("", "", (), None, None, None, None, (), "", "")
    assert list(frame_json(asked)) == list(frame)


def _vectors() -> dict[str, dict[str, object]]:
    lines = (ROOT / "tests/golden/wire1.jsonl").read_text("utf-8").splitlines()
    return {case["name"]: case for case in map(json.loads, lines)}


def test_the_vectors_of_the_makers_guide_are_golden_and_decode_as_shown():
    shown = [json.loads(body) for body in fences(text_of("maker"), "json wire1")]
    assert len(shown) >= 8
    golden = _vectors()
    for case in shown:
        assert case == golden[case["name"]]
        if case.get("raises"):
            with pytest.raises(wire.WireError) as refused:
                wire.unpack_message(bytes.fromhex(case["hex"]))
            assert refused.value.reason == case["raises"]
            continue
        message = wire.unpack_message(bytes.fromhex(case["hex"]))
        if case.get("bad"):
            assert [record.seq for record in message.records] == case["good"]
            assert [[fault.seq, fault.reason] for fault in message.faults] == case["faults"]
        else:
            assert [[one.kind, one.uptime_ms, *one.values] for one in message.records] == case["records"]


@pytest.mark.parametrize("name", GUIDES)
def test_a_python_example_runs_as_it_stands(name, lived_in):
    home, _ = lived_in
    for example in fences(text_of(name), "python run"):
        done = home.run(sys.executable, "-W", "error", "-c", example)
        assert done.returncode == 0, done.stderr


def test_the_shell_example_of_the_makers_guide_prints_a_digest(lived_in):
    home, _ = lived_in
    (example,) = fences(text_of("maker"), "sh run")
    assert re.fullmatch(r"[0-9a-f]{64}\n", home.shell(example))


def test_the_scenario_of_the_makers_guide_can_be_played(tmp_path):
    (example,) = fences(text_of("maker"), "toml scenario")
    (tmp_path / "quiet.toml").write_text(example, "utf-8")
    story = stories.load_story("quiet", folder=tmp_path)
    assert re.fullmatch(r"[0-9a-f]{64}", digest(build_world(story)))


# --- a device of the guide against a real broker and a real hub -----------------------------------


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _running(*command: str, port: int, **options) -> Iterator[None]:
    """A process that listens on a port from the first line of the block to its last."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    try:
        until = time.monotonic() + HANG_GUARD_S
        while not _listens(port):
            assert process.poll() is None, f"{command[0]} must run, ended with status {process.returncode}"
            assert time.monotonic() < until, f"{command[0]} must listen on port {port}"
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_GUARD_S)


def test_the_devices_of_the_makers_guide_are_stored_by_a_real_hub(lived_in, tmp_path):
    home, _ = lived_in
    broker = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
    assert broker, "the tests need Debian's mosquitto: apt-get install mosquitto"
    mqtt, page = _free_port(), _free_port()
    (tmp_path / "mosquitto.conf").write_text(f"listener {mqtt} 127.0.0.1\nallow_anonymous true\nlog_dest none\n")
    (tmp_path / "hub.toml").write_text(
        f'[database]\npath = "hub.db"\n[mqtt]\nport = {mqtt}\n[web]\nport = {page}\n', "utf-8"
    )
    told = ("--config", str(tmp_path / "hub.toml"))
    home.follow(f"scentwalk household import home.toml {shlex.join(told)}")
    with (
        _running(broker, "-c", str(tmp_path / "mosquitto.conf"), port=mqtt, stderr=subprocess.DEVNULL),
        _running("scentwalk", "serve", *told, port=page, env=home.env),
    ):
        for example in fences(text_of("maker"), "python run device"):
            done = home.run(sys.executable, "-W", "error", "-c", example, "127.0.0.1", str(mqtt))
            assert (done.returncode, done.stdout) == (0, "stored\n"), done.stderr
        assert "41 g" in home.follow(f"scentwalk record event:bowl-max/1/2 {shlex.join(told)}")
        assert "250 g" in home.follow(f"scentwalk record event:bowl-max/2/2 {shlex.join(told)}")
    with closing(sqlite3.connect(tmp_path / "hub.db")) as db:
        assert db.execute("SELECT count(*) FROM frame").fetchone() == (6,)
        assert db.execute("SELECT count(*) FROM dead_letter").fetchone() == (0,)
