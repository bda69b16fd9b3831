"""The database's shape, in released steps. Nothing else creates or alters a table.

``record`` is every foreign key's target: whatever can be cited has one row there, named by
its natural key, so a dangling citation cannot be stored. A released step is never edited;
a step holds one statement per ``execute`` (``executescript`` commits behind its back).

``crc`` is the CRC-32 of a row's content, so that a rotten row is known as such. Day rows whose
frames were purged are sealed: ``sealed_day`` holds what the purged frames summed up to, and a
frame with ``sealed`` = 1 is already contained in it. ``mark.purged`` is the highest seq of a
boot that was purged, ``purged_import`` the references of imported rows that were: a copy that
comes again is known, not new. ``radio_counter`` is the last counter of a device's encrypted
advertisements: a recording played back has none that is higher.

``heard`` keeps the messages of other people's devices byte for byte, with the profile and version
that read them; the items of one message stand ``within`` the row that holds its bytes. ``derived``
says from which message a row was made. A ``source`` is what says it is one thing (a serial number,
a radio address); ``device`` is whose rows it makes. A ``part`` is what one pet does at a shared
device, told apart by its ``mark`` (a tag, a pet recognised by its weight).

``food.product`` is the code a product import gave a food, ``owned`` = 0 says that nobody but such an
import named it: both go with the product. ``forgotten`` names the senders whose messages are not
taken any more, ``tombstone`` what a cited record was that the owner had forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlite_utils import Database, Migrations

if TYPE_CHECKING:
    import sqlite3


migrations = Migrations("scentwalk")


def _change_triggers() -> tuple[str, ...]:
    """Log the pair of every edge that is written or whose evidence is, with the epoch it was in.

    Nothing is logged before the first epoch. The log holds a pair once, at its last epoch.
    """
    triggers = []
    for table in ("edge", "evidence"):
        for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            if table == "edge":
                ends, edge = f"min({row}.tail, {row}.head), max({row}.tail, {row}.head)", ""
            else:
                ends, edge = "min(e.tail, e.head), max(e.tail, e.head)", f"JOIN edge e ON e.record = {row}.edge "
            triggers.append(
                f"CREATE TRIGGER {table}_{event.lower()} AFTER {event} ON {table} BEGIN "
                f"INSERT INTO adjacency_change (tail, head, epoch) SELECT {ends}, a.epoch "
                f"FROM adjacency_epoch a {edge}WHERE true ON CONFLICT (tail, head) "
                "DO UPDATE SET epoch = excluded.epoch WHERE epoch <> excluded.epoch; END"
            )
    return tuple(triggers)


_STEP_1 = (
    # -- citations ---------------------------------------------------------------------------
    """CREATE TABLE record (
        id INTEGER PRIMARY KEY,
        ref TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL CHECK (kind IN ('event','day','label','passage','note','log','edge'))
    ) STRICT""",
    # -- what this file is -------------------------------------------------------------------
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    # -- household: each row is a fact with the instant it begins --------------------------------
    "CREATE TABLE zone (valid_from_ms INTEGER PRIMARY KEY, zone TEXT NOT NULL) STRICT",
    """CREATE TABLE pet (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, species TEXT NOT NULL, breed TEXT, born TEXT, sex TEXT,
        neutered INTEGER CHECK (neutered IN (0, 1)), aliases TEXT NOT NULL DEFAULT '[]'
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE pet_status (
        pet TEXT NOT NULL REFERENCES pet(id), valid_from_ms INTEGER NOT NULL, status TEXT NOT NULL,
        PRIMARY KEY (pet, valid_from_ms)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE device (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, aliases TEXT NOT NULL DEFAULT '[]'
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE binding (
        device TEXT NOT NULL REFERENCES device(id), pet TEXT NOT NULL REFERENCES pet(id),
        valid_from_ms INTEGER NOT NULL, valid_to_ms INTEGER,
        PRIMARY KEY (device, valid_from_ms, pet)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE place (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, aliases TEXT NOT NULL DEFAULT '[]'
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE person (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, phone TEXT
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE food (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL DEFAULT 'food', code TEXT,
        aliases TEXT NOT NULL DEFAULT '[]', product TEXT, owned INTEGER NOT NULL DEFAULT 1 CHECK (owned IN (0, 1))
    ) STRICT, WITHOUT ROWID""",
    # -- what devices said ---------------------------------------------------------------------
    """CREATE TABLE frame (
        record INTEGER PRIMARY KEY REFERENCES record(id),
        device TEXT NOT NULL, boot INTEGER, seq INTEGER, kind TEXT NOT NULL,
        uptime_ms INTEGER, received_ms INTEGER NOT NULL,
        start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL,
        dating TEXT NOT NULL,
        earliest_ms INTEGER, latest_ms INTEGER,
        amount INTEGER, unit TEXT, object TEXT, fields TEXT NOT NULL,
        set_aside TEXT,
        sealed INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)), crc INTEGER NOT NULL,
        UNIQUE (device, boot, seq),
        CHECK ((boot IS NULL) = (seq IS NULL))
    ) STRICT""",
    "CREATE INDEX frame_by_device_time ON frame (device, start_ms)",
    "CREATE INDEX frame_by_kind_time ON frame (kind, start_ms) WHERE kind NOT IN ('motion', 'beat')",
    "CREATE INDEX frame_by_device_kind ON frame (device, kind, start_ms) WHERE kind NOT IN ('motion', 'beat')",
    "CREATE INDEX frame_by_device_end ON frame (device, end_ms)",
    "CREATE INDEX frame_bracketed ON frame (device, boot, seq) WHERE dating = 'bracket'",
    """CREATE TABLE boot (
        device TEXT NOT NULL, boot INTEGER NOT NULL, anchors TEXT NOT NULL,
        wall_uptime_ms INTEGER, wall_offset_ms INTEGER,
        PRIMARY KEY (device, boot),
        CHECK ((wall_uptime_ms IS NULL) = (wall_offset_ms IS NULL))
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE mark (
        device TEXT NOT NULL, boot INTEGER NOT NULL, seq INTEGER NOT NULL, purged INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (device, boot)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE dead_letter (
        id INTEGER PRIMARY KEY, transport TEXT NOT NULL, device TEXT NOT NULL, boot INTEGER, seq INTEGER,
        received_ms INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, raw BLOB NOT NULL,
        whole BLOB, read_by TEXT, crc INTEGER NOT NULL,
        UNIQUE (device, boot, seq, raw)
    ) STRICT""",
    # -- other people's devices: what was heard, byte for byte, and whose it is ------------------------
    """CREATE TABLE heard (
        id INTEGER PRIMARY KEY,
        profile TEXT NOT NULL, version INTEGER NOT NULL, transport TEXT NOT NULL, via TEXT NOT NULL,
        source TEXT NOT NULL, key TEXT NOT NULL, first_ms INTEGER NOT NULL, received_ms INTEGER NOT NULL,
        signal INTEGER, within INTEGER REFERENCES heard(id), raw BLOB, crc INTEGER NOT NULL,
        CHECK ((raw IS NULL) = (within IS NOT NULL)), UNIQUE (source, profile, key, first_ms)
    ) STRICT""",
    "CREATE INDEX heard_by_time ON heard (profile, first_ms)",
    "CREATE INDEX heard_within ON heard (within) WHERE within IS NOT NULL",
    """CREATE TABLE derived (
        record INTEGER PRIMARY KEY REFERENCES record(id), heard INTEGER NOT NULL REFERENCES heard(id)
    ) STRICT""",
    "CREATE INDEX derived_by_heard ON derived (heard)",
    """CREATE TABLE profile_state (
        source TEXT NOT NULL, profile TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (source, profile)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE source (
        id TEXT PRIMARY KEY, profile TEXT NOT NULL, kind TEXT NOT NULL, device TEXT NOT NULL,
        first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, replaces TEXT, answered_ms INTEGER
    ) STRICT, WITHOUT ROWID""",
    "CREATE TABLE part (device TEXT PRIMARY KEY, whole TEXT NOT NULL, mark TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX part_of_whole ON part (whole)",
    "CREATE TABLE device_key (device TEXT PRIMARY KEY, irk BLOB, bthome BLOB) STRICT, WITHOUT ROWID",
    "CREATE TABLE purged_import (ref TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    "CREATE TABLE radio_counter (device TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    # -- time series: one row per series and local day, quarter hours in blobs -----------------------
    "CREATE TABLE series (id TEXT PRIMARY KEY, pet TEXT NOT NULL, property TEXT NOT NULL, unit TEXT NOT NULL) STRICT",
    """CREATE TABLE day (
        record INTEGER PRIMARY KEY REFERENCES record(id),
        series TEXT NOT NULL REFERENCES series(id), date TEXT NOT NULL,
        start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL,
        n INTEGER NOT NULL, total INTEGER NOT NULL, covered_ms INTEGER NOT NULL,
        sums BLOB NOT NULL, covered BLOB NOT NULL,
        set_aside TEXT, revision INTEGER NOT NULL DEFAULT 0, late INTEGER, crc INTEGER NOT NULL,
        UNIQUE (series, date)
    ) STRICT""",
    """CREATE TABLE sealed_day (
        record INTEGER PRIMARY KEY REFERENCES day(record),
        n INTEGER NOT NULL, sums BLOB NOT NULL, covered BLOB NOT NULL, set_aside TEXT,
        late INTEGER NOT NULL, crc INTEGER NOT NULL
    ) STRICT""",
    # -- documents ---------------------------------------------------------------------------------
    """CREATE TABLE document (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, title TEXT NOT NULL, source TEXT NOT NULL, code TEXT,
        added_ms INTEGER NOT NULL, facts TEXT NOT NULL DEFAULT '[]'
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE text_record (
        record INTEGER PRIMARY KEY REFERENCES record(id),
        document TEXT REFERENCES document(id), pet TEXT, at_ms INTEGER, until_ms INTEGER,
        kind TEXT NOT NULL, object TEXT, title TEXT NOT NULL, text TEXT NOT NULL, facts TEXT NOT NULL DEFAULT '[]',
        crc INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX text_by_time ON text_record (kind, at_ms)",
    # -- the evidence graph ------------------------------------------------------------------------
    "CREATE TABLE vertex (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, label TEXT) STRICT",
    """CREATE TABLE edge (
        record INTEGER PRIMARY KEY REFERENCES record(id),
        tail INTEGER NOT NULL REFERENCES vertex(id), relation TEXT NOT NULL,
        head INTEGER NOT NULL REFERENCES vertex(id),
        valid_from_ms INTEGER, valid_to_ms INTEGER,
        UNIQUE (tail, head, relation, valid_from_ms)
    ) STRICT""",
    "CREATE INDEX edge_by_head ON edge (head, relation)",
    "CREATE INDEX edge_dated ON edge (tail, head) WHERE valid_from_ms IS NOT NULL OR valid_to_ms IS NOT NULL",
    """CREATE TABLE evidence (
        edge INTEGER NOT NULL REFERENCES edge(record) ON DELETE CASCADE,
        record INTEGER NOT NULL REFERENCES record(id),
        true_mass REAL NOT NULL CHECK (true_mass BETWEEN 0 AND 1),
        false_mass REAL NOT NULL CHECK (false_mass BETWEEN 0 AND 1),
        witness TEXT NOT NULL, reliability REAL NOT NULL CHECK (reliability BETWEEN 0 AND 1),
        span_start INTEGER, span_end INTEGER,
        PRIMARY KEY (edge, record, witness)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX evidence_by_record ON evidence (record)",
    """CREATE TABLE wall (
        id INTEGER PRIMARY KEY, edge TEXT, hypothesis TEXT, reason TEXT NOT NULL,
        marked_ms INTEGER NOT NULL, undone_ms INTEGER,
        CHECK ((edge IS NULL) <> (hypothesis IS NULL))
    ) STRICT""",
    # -- the compact graph: at most one snapshot, and the pairs that changed since ---------------------
    """CREATE TABLE adjacency (
        id INTEGER PRIMARY KEY CHECK (id = 1), view TEXT NOT NULL, crc INTEGER NOT NULL,
        arrays BLOB NOT NULL, names BLOB NOT NULL
    ) STRICT""",
    "CREATE TABLE adjacency_epoch (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL) STRICT",
    """CREATE TABLE adjacency_change (
        tail INTEGER NOT NULL, head INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY (tail, head)
    ) STRICT, WITHOUT ROWID""",
    *_change_triggers(),
    # -- names: what a question's words may mean, made again with each vocabulary ----------------------
    """CREATE TABLE alias (
        first TEXT NOT NULL, form TEXT NOT NULL, lexicon TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
        PRIMARY KEY (first, form, lexicon, kind, target)
    ) STRICT, WITHOUT ROWID""",
    # -- what learn found --------------------------------------------------------------------------
    """CREATE TABLE finding (
        series TEXT NOT NULL REFERENCES series(id), as_of TEXT NOT NULL, window TEXT NOT NULL,
        verdict TEXT NOT NULL, facts TEXT NOT NULL,
        PRIMARY KEY (series, as_of, window)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE correlation (
        a TEXT NOT NULL, b TEXT NOT NULL, as_of TEXT NOT NULL, facts TEXT NOT NULL, passed INTEGER NOT NULL,
        PRIMARY KEY (a, b, as_of)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE followed (
        event TEXT NOT NULL, series TEXT NOT NULL REFERENCES series(id), as_of TEXT NOT NULL, facts TEXT NOT NULL,
        PRIMARY KEY (event, series)
    ) STRICT, WITHOUT ROWID""",
    "CREATE TABLE learned (as_of TEXT PRIMARY KEY, done_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    # -- hard floors: said until somebody answers ----------------------------------------------------
    """CREATE TABLE floor_notice (
        id TEXT PRIMARY KEY, pet TEXT NOT NULL REFERENCES pet(id), kind TEXT NOT NULL, device TEXT,
        urgency TEXT NOT NULL CHECK (urgency IN ('red', 'amber')), basis TEXT NOT NULL,
        since_ms INTEGER NOT NULL, raised_ms INTEGER NOT NULL, text TEXT NOT NULL,
        answer TEXT CHECK (answer IN ('ate_elsewhere', 'not_at_home', 'seen')), answered_ms INTEGER, ended_ms INTEGER,
        CHECK ((answer IS NULL) = (answered_ms IS NULL))
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE floor_cites (
        notice TEXT NOT NULL REFERENCES floor_notice(id) ON DELETE CASCADE, place INTEGER NOT NULL,
        record INTEGER NOT NULL REFERENCES record(id),
        PRIMARY KEY (notice, place)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX floor_cites_by_record ON floor_cites (record)",
    # -- answers given -----------------------------------------------------------------------------
    """CREATE TABLE answer (
        id INTEGER PRIMARY KEY, asked_ms INTEGER NOT NULL, question TEXT NOT NULL, body TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE answer_cites (
        answer INTEGER NOT NULL REFERENCES answer(id) ON DELETE CASCADE,
        record INTEGER NOT NULL REFERENCES record(id), revision INTEGER, restated INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (answer, record)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX answer_cites_by_record ON answer_cites (record)",
    # -- verdicts told: compared once more where a day behind them changed; now_word = another word came out
    """CREATE TABLE answer_verdict (
        answer INTEGER NOT NULL REFERENCES answer(id) ON DELETE CASCADE, claim TEXT NOT NULL,
        series TEXT NOT NULL REFERENCES series(id),
        since_date TEXT NOT NULL, first_date TEXT NOT NULL, last_date TEXT NOT NULL,
        until_ms INTEGER NOT NULL, told_ms INTEGER NOT NULL, word TEXT NOT NULL,
        due INTEGER NOT NULL DEFAULT 0 CHECK (due IN (0, 1)),
        now_word TEXT, late INTEGER NOT NULL DEFAULT 0, changed_ms INTEGER,
        PRIMARY KEY (answer, claim, series),
        CHECK ((now_word IS NULL) = (changed_ms IS NULL))
    ) STRICT, WITHOUT ROWID""",
    # -- what the owner had forgotten --------------------------------------------------------------
    """CREATE TABLE tombstone (
        record INTEGER PRIMARY KEY REFERENCES record(id), what TEXT NOT NULL, forgotten_ms INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE forgotten (
        sender TEXT PRIMARY KEY, device TEXT NOT NULL, forgotten_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX answer_verdict_by_series ON answer_verdict (series, last_date)",
    "CREATE INDEX answer_verdict_due ON answer_verdict (answer) WHERE due = 1",
)


@migrations()
def step_1_the_whole_way(db: Database) -> None:
    """Household, frames, days, documents, graph, findings, answers."""
    for statement in _STEP_1:
        db.execute(statement)


def apply_steps(connection: sqlite3.Connection) -> None:
    """Bring a database to the newest step."""
    migrations.apply(Database(connection))
