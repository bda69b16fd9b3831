"""What the page says of the Bluetooth radio: its state in, a sentence and counted lines out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.ask.records import when

if TYPE_CHECKING:
    from gateway.links.ble import RadioState
    from gateway.model import Household

__all__ = ["COUNTER_WORDS", "RadioPage", "radio_json", "radio_page"]

_STANDING = {
    "starting": "has not heard anything yet",
    "listening": "listens",
    "quiet": "has gone quiet and is being restarted",
    "degraded": "hears nothing, although it was restarted; what its devices do is not recorded",
}
COUNTER_WORDS = {
    "advertisements": "advertisements heard",
    "advertisements_ignored": "advertisements of devices nothing here reads",
    "advertisements_unreadable": "advertisements that could not be read",
    "advertisements_replayed": "advertisements refused because they were heard before",
    "advertisements_dropped": "advertisements dropped because the hub did not keep up",
    "handovers": "handovers that ended well",
    "handovers_broken": "handovers that broke and were taken up again",
    "handovers_refused": "times a device was not let hand over, because it is not known to",
    "messages_handed_over": "messages handed over",
    "parts_broken": "messages that lost a part on the way and were sent again",
    "notifications_dropped": "notified messages that found no room and were sent again",
    "connections_unclosed": "connections whose end was not confirmed",
    "radio_restarts": "times the radio was restarted because nothing was heard",
    "radio_power_cycles": "times the adapter was switched off and on",
    "radio_failures": "things the adapter refused to do",
}


@dataclass(frozen=True, slots=True)
class RadioPage:
    """The radio as an owner reads it: one sentence, what is wrong, counted lines."""

    line: str
    trouble: str
    refused: str
    counters: tuple[tuple[str, int], ...]


def radio_page(state: RadioState, home: Household) -> RadioPage:
    """The page of a radio that is configured."""
    since = "" if state.since_ms is None else f" since {when(state.since_ms, home)}"
    return RadioPage(
        line=f"The adapter {state.adapter} {_STANDING[state.standing]}{since}.",
        trouble=state.trouble,
        refused=_refused_line(state.refused),
        counters=tuple((COUNTER_WORDS[name], value) for name, value in state.counters.items()),
    )


def _refused_line(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return (
        f"Not let hand over: {', '.join(names)}. Anybody in range may call a device anything. If one is yours, bind it "
        "as a tracker (scentwalk device bind), or list it under ble.trackers; until then its records stay with it."
    )


def radio_json(state: RadioState | None) -> dict[str, object]:
    """The same for programs; ``standing`` is ``off`` where no adapter is configured."""
    if state is None:
        return {"standing": "off"}
    return {
        "standing": state.standing.value,
        "adapter": state.adapter,
        "since_ms": state.since_ms,
        "trouble": state.trouble,
        "refused": list(state.refused),
        "counters": dict(state.counters),
    }
