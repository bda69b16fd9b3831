"""Once per closed local day: windows become findings, records become evidence and edges."""

from gateway.learn.correlations import is_pass_day
from gateway.learn.facts import binding_ref, refresh_facts
from gateway.learn.floors import watch_floors
from gateway.learn.notices import answer_notice
from gateway.learn.passes import catch_up

__all__ = ["answer_notice", "binding_ref", "catch_up", "is_pass_day", "refresh_facts", "watch_floors"]
