"""The compact graph of a large home: from snapshot and changes it is the graph of all links."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.app import Gateway
from gateway.ask import connect
from gateway.ask.adjacency import LEAST_EDGES, is_due, kept_graph, rewritten, walkable_in
from gateway.ask.onfile import Given
from gateway.ask.scene import Scene
from gateway.config import Config
from gateway.errors import GraphError, StoreError
from gateway.graph.adjacency import build, canonical_dump, in_view
from gateway.graph.belief import fold
from gateway.graph.refs import FiledRefs
from gateway.graph.walk import walk
from gateway.links.clock import SystemClock
from gateway.model import Edge, Evidence, Household, Interval, Mass, RecordRef, Vertex
from gateway.ontology.load import load
from gateway.store import Database
from gateway.store.salvage import salvage
from gateway.stored import TextRecord

ONTOLOGY = load()
NAMES = ("pet:max", "food:a", "food:b", "species:chicken", "species:beef", "condition:allergy", "sign:itch", "ing:meal")
RELATIONS = ("ate", "contains", "may_contain", "may_cause[dog]", "may_cause[cat]", "has_sign[dog]", "tolerates")
NOTE = RecordRef("note:vet/1")
TIMES = (0, 100, 200, 300)


def the_scene(reader, now_ms=1000):
    return Scene(reader, ONTOLOGY, Household(zones=()), now_ms, "2026-01-01")


def built_graph(reader, view, now_ms):
    """The household graph as it is built from every link there is."""
    links = the_scene(reader, now_ms).on_file.everything()
    return build([link for link in links if in_view(link.edge, view)], walkable_in(ONTOLOGY)), links


def drawn_edge(rng):
    tail, head = rng.sample(NAMES, 2)
    start = rng.choice((None, None, *TIMES))
    end = None if rng.random() < 0.7 or start is None else start + rng.choice((50, 150))
    return Edge(Vertex(tail), rng.choice(RELATIONS), Vertex(head), start, end)


def drawn_evidence(rng, edge):
    true = round(rng.random(), 2)
    mass = Mass(true, round(rng.random() * (1 - true), 2))
    return Evidence(edge.ref, NOTE, mass, rng.choice(("vet", "bowl", "guide")), rng.choice((0.6, 0.9)))


def stored_edges(tx):
    return tx.edges(from_ms=-(2**60), to_ms=2**60)


def edit(tx, rng):
    """One change, as links, learn, owners and deletions make them."""
    edges = stored_edges(tx)
    kind = rng.choice(("edge", "edge", "evidence", "derived", "wall", "undo", "forget"))
    if kind == "edge" or not edges:
        edge = drawn_edge(rng)
        tx.save_edge(edge)
        tx.save_evidence(drawn_evidence(rng, edge))
    elif kind == "evidence":
        tx.save_evidence(drawn_evidence(rng, rng.choice(edges)))
    elif kind == "derived":
        relations = ("ate", "has_sign[dog]")
        kept = [edge for edge in edges if edge.relation in relations and rng.random() < 0.5]
        tx.replace_edges(relations, kept, [drawn_evidence(rng, edge) for edge in kept])
    elif kind == "wall":
        tx.add_wall(edge=rng.choice(edges).ref, hypothesis=None, reason="no", marked_ms=rng.choice(TIMES))
    elif kind == "undo":
        for number, *_ in tx.walls(at_ms=2**60)[:1]:
            tx.undo_wall(number, undone_ms=400)
    else:
        tx._db.execute(
            "DELETE FROM evidence WHERE witness = 'vet' AND edge = (SELECT id FROM record WHERE ref = ?)",
            (rng.choice(edges).ref.text,),
        )


def rewrite(database):
    with database.transaction() as tx:
        epoch = tx.begin_adjacency()
    with database.snapshot() as reader:
        snapshot = rewritten(reader, ONTOLOGY)
    with database.transaction() as tx:
        tx.save_adjacency(snapshot, epoch=epoch)
    return snapshot


def pairs_by_name(graph):
    pairs = graph.pairs()
    return {
        frozenset((graph.names[tail], graph.names[head])): (belief, graph.edges[entry])
        for tail, head, belief, entry in zip(*(column.tolist() for column in pairs), strict=True)
    }


def must_agree(reader, view, now_ms):
    """Everything a question can see of the two graphs."""
    kept = kept_graph(reader, ONTOLOGY, view, now_ms=now_ms)
    built, links = built_graph(reader, view, now_ms)
    assert pairs_by_name(kept) == pairs_by_name(built)
    assert set(built.names) <= set(kept.names)
    assert set(kept.names) - set(built.names) <= {kept.names[v] for v in kept.lonely().tolist()}
    for link in links:
        entries = built.entry_of(link.edge.ref), kept.entry_of(link.edge.ref)
        assert (entries[0] is None) == (entries[1] is None)
    for name in built.names[:3]:
        ours, theirs = (walk(g, frozenset({g.id_of(name), g.id_of(max(built.names))})) for g in (kept, built))
        mass = {kept.names[v]: m for v, m in enumerate(ours.mass.tolist())}
        apart = sum(abs(mass[other] - m) for other, m in zip(built.names, theirs.mass.tolist(), strict=True))
        assert apart <= ours.error + theirs.error + 1e-12
        assert len(ours.walled_in) == len(theirs.walled_in)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_snapshot_and_changes_give_the_graph_of_all_links_whatever_was_edited(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "hub.db") as database:
        with database.transaction() as tx:
            tx.save_text(TextRecord(NOTE, "note", "Visit", "All well.", pet="max", at_ms=0))
            for _ in range(rng.randrange(12)):
                edit(tx, rng)
        rewrite(database)
        for _ in range(4):
            with database.transaction() as tx:
                for _ in range(rng.randrange(4)):
                    edit(tx, rng)
            with database.snapshot() as reader:
                start = rng.choice(TIMES)
                must_agree(reader, Interval(start, start + rng.choice((0, 120))), rng.choice((50, 150, 1000)))
            if rng.random() < 0.4:
                rewrite(database)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_a_snapshot_made_of_the_last_one_and_its_changes_has_the_bytes_of_one_made_of_all_rows(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "hub.db") as database:
        with database.transaction() as tx:
            tx.save_text(TextRecord(NOTE, "note", "Visit", "All well.", pet="max", at_ms=0))
        rewrite(database)
        for _ in range(3):
            with database.transaction() as tx:
                for _ in range(rng.randrange(1, 10)):
                    edit(tx, rng)
            again = rewrite(database)
            with database.transaction() as tx:
                assert tx.adjacency() == again
                assert tx.adjacency_changes() == 0
                tx.drop_adjacency()
            anew = rewrite(database)
            assert (again.arrays, again.names) == (anew.arrays, anew.names)


@pytest.fixture
def home(tmp_path):
    """A chain of the books, one dated meal, and a snapshot of it."""
    edges = (
        Edge(Vertex("food:a"), "contains", Vertex("species:chicken")),
        Edge(Vertex("species:chicken"), "may_cause[dog]", Vertex("condition:allergy")),
        Edge(Vertex("species:chicken"), "may_cause[cat]", Vertex("condition:allergy")),
        Edge(Vertex("condition:allergy"), "has_sign[dog]", Vertex("sign:itch")),
        Edge(Vertex("pet:max"), "ate", Vertex("food:a"), 100, 200),
    )
    with Database(tmp_path / "hub.db") as database:
        with database.transaction() as tx:
            tx.save_text(TextRecord(NOTE, "note", "Visit", "All well.", pet="max", at_ms=0))
            for edge in edges:
                tx.save_edge(edge)
                tx.save_evidence(Evidence(edge.ref, NOTE, Mass(0.8), "vet", 0.9))
        rewrite(database)
        yield database, edges


ALWAYS = Interval(0, 1000)


def graph_of(database, *, view=ALWAYS, now_ms=1000):
    with database.snapshot() as reader:
        return pairs_by_name(kept_graph(reader, ONTOLOGY, view, now_ms=now_ms))


def test_a_dated_edge_counts_in_a_view_of_its_time_and_in_no_other(home):
    database, _ = home
    meal = frozenset(("pet:max", "food:a"))
    assert meal in graph_of(database, view=Interval(150, 160))
    assert meal not in graph_of(database, view=Interval(200, 900))
    assert meal not in graph_of(database, view=Interval(0, 90), now_ms=90)


def test_the_owners_mark_is_a_wall_from_then_on_and_not_before_or_after_its_undo(home):
    database, edges = home
    pair = frozenset(("food:a", "species:chicken"))
    with database.transaction() as tx:
        number = tx.add_wall(edge=edges[0].ref, hypothesis=None, reason="no", marked_ms=300)
    rewrite(database)  # a snapshot knows no marks
    assert pair in graph_of(database, now_ms=299)
    assert pair not in graph_of(database, now_ms=300)
    with database.transaction() as tx:
        tx.undo_wall(number, undone_ms=400)
    assert pair in graph_of(database, now_ms=400)


def test_a_deleted_edge_leaves_the_next_graph_and_its_parallel_takes_its_place(home):
    database, edges = home
    pair = frozenset(("species:chicken", "condition:allergy"))
    with database.transaction() as tx:
        tx.replace_edges(("may_cause[cat]",), [], [])
    assert graph_of(database)[pair][1] == edges[1].ref
    with database.transaction() as tx:
        tx.replace_edges(("may_cause[dog]",), [], [])
    assert pair not in graph_of(database)


def test_adding_a_hundred_edges_is_seen_by_the_next_walk_without_a_rewrite(home):
    database, _ = home
    with database.transaction() as tx:
        for number in range(100):
            edge = Edge(Vertex("food:a"), "contains", Vertex(f"species:s{number}"))
            tx.save_edge(edge)
            tx.save_evidence(Evidence(edge.ref, NOTE, Mass(0.5), "vet", 0.9))
        assert tx.adjacency_changes() == 100
    assert sum("food:a" in pair for pair in graph_of(database)) == 102


def test_the_canonical_dump_does_not_change_with_the_snapshot(home):
    database, _ = home
    with database.snapshot() as reader:
        before = canonical_dump(the_scene(reader).on_file.everything())
    rewrite(database)
    with database.transaction() as tx:
        tx.drop_adjacency()
    with database.snapshot() as reader:
        assert canonical_dump(the_scene(reader).on_file.everything()) == before
        assert kept_graph(reader, ONTOLOGY, Interval(0, 1), now_ms=1) is None


def test_a_change_that_was_made_while_the_snapshot_was_written_stays_logged(home):
    database, edges = home
    against = Evidence(edges[3].ref, NOTE, Mass(0.0, 0.9), "bowl", 0.9)
    with database.transaction() as tx:
        tx.save_evidence(replace(against, mass=Mass(0.5)))  # logged once before
        epoch = tx.begin_adjacency()
    with database.snapshot() as reader:
        snapshot = rewritten(reader, ONTOLOGY)
    with database.transaction() as tx:
        tx.save_evidence(against)
    with database.transaction() as tx:
        tx.save_adjacency(snapshot, epoch=epoch)
        assert tx.adjacency_changes() == 1
    with database.snapshot() as reader:
        must_agree(reader, Interval(0, 1000), 1000)


def test_a_snapshot_of_another_epoch_is_not_saved(home):
    database, _ = home
    with database.snapshot() as reader:
        snapshot = reader.adjacency()
    with database.transaction() as tx:
        epoch = tx.begin_adjacency()
        tx.begin_adjacency()
        with pytest.raises(StoreError, match=f"epoch that is open, {epoch + 1}, is of {epoch}"):
            tx.save_adjacency(snapshot, epoch=epoch)
        tx.drop_adjacency()
        with pytest.raises(StoreError, match="is of 1"):
            tx.save_adjacency(snapshot, epoch=1)


def test_a_rotten_snapshot_is_none_and_one_of_another_view_is_not_used(home):
    database, _ = home
    relations = {**ONTOLOGY.relations, "contains": replace(ONTOLOGY.relations["contains"], walkable=False)}
    another = replace(ONTOLOGY, relations=relations)
    with database.snapshot() as reader:
        assert not is_due(reader, ONTOLOGY, least=3)
        assert is_due(reader, another, least=3)
        assert kept_graph(reader, another, Interval(0, 1), now_ms=1) is None
    with database.transaction() as tx:
        tx._db.execute("UPDATE adjacency SET names = CAST(replace(names, 'itch', 'itcH') AS BLOB)")
    with database.snapshot() as reader:
        assert reader.adjacency() is None
        assert is_due(reader, ONTOLOGY, least=3)


def test_a_snapshot_is_due_where_it_pays_and_after_many_changes(home):
    database, edges = home
    with database.snapshot() as reader:
        assert not is_due(reader, ONTOLOGY)  # a home of five edges needs none
        assert not is_due(reader, ONTOLOGY, least=4, bound=2)
    with database.transaction() as tx:
        for edge in edges:
            tx.save_evidence(Evidence(edge.ref, NOTE, Mass(0.3), "bowl", 0.9))
    with database.snapshot() as reader:
        assert is_due(reader, ONTOLOGY, least=4, bound=2)


def test_a_question_uses_the_snapshot_where_there_is_one_and_builds_the_same_graph_without(home):
    database, _ = home
    with database.snapshot() as reader:
        scene = the_scene(reader)
        kept = connect.household_view(scene, scene.on_file, Interval(0, 1000))
        assert isinstance(kept.edges, FiledRefs)
        kept_pairs = pairs_by_name(kept)
    with database.transaction() as tx:
        tx.drop_adjacency()
    with database.snapshot() as reader:
        scene = the_scene(reader)
        built = connect.household_view(scene, scene.on_file, Interval(0, 1000))
        assert not isinstance(built.edges, FiledRefs)
        assert pairs_by_name(built) == kept_pairs


def test_links_read_by_their_ends_are_the_links_of_the_whole_file(home):
    database, edges = home
    with database.transaction() as tx:
        tx.save_edge(Edge(Vertex("species:beef"), "may_cause[cat]", Vertex("condition:allergy")))
        tx.add_wall(edge=edges[1].ref, hypothesis=None, reason="no", marked_ms=500)
    for now_ms in (50, 250, 1000):
        with database.snapshot() as reader:
            scene = the_scene(reader, now_ms)
            everything = scene.on_file.everything()
            ends = {end.name for link in everything for end in (link.edge.tail, link.edge.head)}
            by_tail = Given(link for end in sorted(ends) for link in scene.on_file.leaving(end))
            assert by_tail.everything() == everything
            for base in ("may_cause", "contains"):
                found = [link for end in sorted(ends) for link in scene.on_file.entering(end, (base,))]
                wanted = [link for link in everything if link.edge.relation.partition("[")[0] == base]
                assert sorted(found, key=lambda link: link.edge.ref) == sorted(wanted, key=lambda link: link.edge.ref)


def test_the_hub_writes_the_snapshot_of_a_large_home_beside_its_writer(home):
    database, _ = home

    async def keep():
        gateway = Gateway(Config(), SystemClock(), database)
        await gateway.keep_graph()
        gateway.writer.close()

    with database.transaction() as tx:
        tx.drop_adjacency()
        for number in range(LEAST_EDGES - 5):
            tx.save_edge(Edge(Vertex(f"food:f{number % 1000}"), "contains", Vertex(f"species:s{number // 1000}")))
    asyncio.run(keep())
    with database.snapshot() as reader:
        assert reader.adjacency() is None  # four timeless edges of the home and these are one too few
    with database.transaction() as tx:
        tx.save_edge(Edge(Vertex("food:f"), "contains", Vertex("species:s")))
    asyncio.run(keep())
    with database.snapshot() as reader:
        assert reader.adjacency() is not None
        assert not is_due(reader, ONTOLOGY)
        assert kept_graph(reader, ONTOLOGY, ALWAYS, now_ms=1000).pair_count == 4  # an edge without evidence is unknown


def test_a_salvaged_file_makes_its_graph_from_the_rows(home, tmp_path):
    database, _ = home
    database.close()
    salvage(tmp_path / "hub.db", tmp_path / "saved.db", clock_source="system")
    with sqlite3.connect(tmp_path / "saved.db") as saved:
        counted = saved.execute("SELECT (SELECT count(*) FROM adjacency), (SELECT count(*) FROM edge)").fetchone()
        assert counted == (0, 5)
    saved.close()


def test_a_pair_of_several_edges_is_told_by_the_most_believed_live_one_and_knows_the_others(home):
    database, edges = home
    pair = (Vertex("species:chicken"), Vertex("condition:allergy"))
    more = {
        Edge(pair[0], "may_cause[rabbit]", pair[1]): Mass(0.95),
        Edge(pair[1], "has_sign[dog]", pair[0]): Mass(0.0, 0.9),  # refuted
        Edge(pair[0], "tolerates", pair[1]): Mass(0.99),  # not walkable
    }
    with database.transaction() as tx:
        for edge, mass in more.items():
            tx.save_edge(edge)
            tx.save_evidence(Evidence(edge.ref, NOTE, mass, "vet", 0.9))
    rewrite(database)
    with database.snapshot() as reader:
        graph = kept_graph(reader, ONTOLOGY, ALWAYS, now_ms=1000)
        assert not graph.edges.fresh.keys() & {graph.entry_of(edges[1].ref)}  # it is read from the rows
        best, refuted, other = (edge.ref for edge in more)
        entry = graph.entry_of(best)
        assert graph.edges[entry] == best
        assert graph.edges.between([entry, entry])[1] == (best, edges[2].ref, edges[1].ref)  # equals by stable name
        assert graph.entry_of(edges[1].ref) == graph.entry_of(edges[2].ref) == entry
        assert graph.entry_of(refuted) is graph.entry_of(other) is None
        must_agree(reader, ALWAYS, 1000)


def test_a_graph_whose_rows_are_not_those_it_was_made_of_is_an_error_and_no_other_edge(home):
    database, edges = home
    with database.snapshot() as reader:
        graph = kept_graph(reader, ONTOLOGY, ALWAYS, now_ms=1000)
        entry = graph.entry_of(edges[0].ref)
        with pytest.raises(IndexError):
            graph.edges[graph.pair_count]
        assert reader.edges_between([("food:a", "species:none"), ("no:thing", "food:a")]) == [(), ()]
        assert reader.rows_between("no:thing", "food:a") == ()
    elsewhere = replace(graph, edges=FiledRefs(graph.edges.layout, NoRows()))
    with pytest.raises(GraphError, match=r"live edge in the rows, .* have none"):
        elsewhere.edges[entry]


class NoRows:
    """A book of another file."""

    def live_between(self, pairs):
        return [()] * len(pairs)


def test_folding_a_row_beside_the_snapshot_is_folding_it_anywhere(home):
    database, edges = home
    with database.snapshot() as reader:
        (meal,) = reader.edges_beside()
        assert (meal.edge, reader.pairs_beside()) == (edges[4], (("food:a", "pet:max"),))
        assert fold(meal.edge, meal.evidence) == next(
            link for link in the_scene(reader).on_file.everything() if link.edge == meal.edge
        )
        assert [row.edge for row in reader.timeless_edges()] == sorted(
            edges[:4], key=lambda e: (e.tail, e.relation, e.head)
        )
