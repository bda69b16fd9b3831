"""Once per closed local day: windows become findings, records become evidence and edges."""

from gateway.learn.facts import refresh_facts
from gateway.learn.floors import watch_floors
from gateway.learn.notices import answer_notice
from gateway.learn.passes import catch_up

__all__ = ["answer_notice", "catch_up", "refresh_facts", "watch_floors"]
