"""Once per closed local day: windows become findings, records become evidence and edges."""

from gateway.learn.facts import refresh_facts
from gateway.learn.passes import catch_up

__all__ = ["catch_up", "refresh_facts"]
