"""Which things of this home belong together: a snapshot in, groups of words and links out.

The groups are communities of the household's graph around its pets. They order nothing and no
answer uses them: they show an owner what the hub has on file and how it hangs together.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.ask.adjacency import LARGE_ERROR
from gateway.ask.connect import household_view
from gateway.ask.records import vertex_words
from gateway.ask.scene import Scene
from gateway.graph.communities import communities_within
from gateway.graph.walk import walk
from gateway.model import Interval
from gateway.store.reads import Reader

__all__ = ["Together", "read_together"]

_VIEW_MS = 30 * 86_400_000
"""What was valid in the last thirty days: the foods and visitors of now."""

_NEAREST = 200
"""Vertices that are grouped: so many hold nearly all of the walk's mass, in a home of any size."""

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Together:
    """One group: its things in the household's words, and how many more there are."""

    things: tuple[str, ...]
    more: int


def read_together(reader: Reader, *, now_ms: int) -> tuple[Together, ...]:
    """The groups around the pets, those with a pet first, then by name; none of a single thing.

    Only what is nearest to the pets is grouped, so that a large catalogue costs nothing.
    """
    scene = Scene.at(reader, now_ms)
    graph = household_view(scene, scene.on_file, Interval(now_ms - _VIEW_MS, now_ms))
    pets = frozenset(found for pet in scene.home.pets if (found := graph.id_of(f"pet:{pet.id}")) is not None)
    if not pets:
        return ()
    nearest = walk(graph, pets, tol=LARGE_ERROR).top(_NEAREST)
    labels = reader.vertex_labels()
    groups = []
    for members in communities_within(graph, {*nearest, *pets}):
        if len(members) > 1:
            words = sorted({vertex_words(graph.names[vertex], scene.home, labels) for vertex in members - pets})
            first = sorted(vertex_words(graph.names[pet], scene.home, labels) for pet in members & pets)
            groups.append((not first, (*first, *words)))
    return tuple(Together(things[:_SHOWN], max(0, len(things) - _SHOWN)) for _, things in sorted(groups))
