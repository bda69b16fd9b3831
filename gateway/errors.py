"""Every error the gateway raises on purpose, in one tree.

    ScentwalkError
     ├── ConfigError            the TOML configuration says something that cannot hold
     ├── StoreError             the database file
     │    ├── DatabaseUnreadable   not a database, damaged, or another program's
     │    ├── DatabaseTooNew       written by a later release; nothing was changed
     │    ├── DatabaseBusy         another process holds the writer's lock
     │    ├── RowsRefused          rows that break a rule of the schema; trying again is no use
     │    └── UnknownRecord        a reference that resolves to nothing
     ├── HouseholdError         pets, devices, zone: missing or contradictory
     ├── ImportRefused          a file that is not what it claims; nothing of it was stored
     ├── PayloadError           bytes of a device that cannot be read (goes to dead letters)
     ├── BrokerError            the broker cannot be started or reached
     ├── RadioError             the Bluetooth adapter is absent, ambiguous or does not answer
     ├── PortBusy               a local port is taken by someone else
     ├── GraphError             belief, seeds or edges outside what the walk accepts
     │    ├── BeliefError          a mass outside [0, 1], or total conflict (K = 1)
     │    └── NotConverged         an iteration ended without its certificate
     └── MeasureError           arrays that break their declared shape (a caller's mistake;
                                bad *data* is a typed result, never this)

A message says what must hold, then what was found, with units. The same facts are
attributes where a caller may act on them.
"""

from __future__ import annotations

__all__ = [
    "BeliefError",
    "BrokerError",
    "ConfigError",
    "DatabaseBusy",
    "DatabaseTooNew",
    "DatabaseUnreadable",
    "GraphError",
    "HouseholdError",
    "ImportRefused",
    "MeasureError",
    "NotConverged",
    "PayloadError",
    "PortBusy",
    "RadioError",
    "RowsRefused",
    "ScentwalkError",
    "StoreError",
    "UnknownRecord",
]


class ScentwalkError(Exception):
    """The root: catch this at the command line, nowhere deeper."""


class ConfigError(ScentwalkError):
    """A configuration value that cannot hold; names file, key, expectation and finding."""


class StoreError(ScentwalkError):
    """Something about the database file."""


class DatabaseUnreadable(StoreError):
    """The file is not a database of ours, or is damaged. Nothing was written to it."""


class DatabaseTooNew(StoreError):
    """The file was written by a later release. Nothing was written to it."""


class DatabaseBusy(StoreError):
    """Another process holds the writer's lock of this file."""


class RowsRefused(StoreError):
    """Rows break a rule of the schema: nothing was written, and trying again is no use."""


class UnknownRecord(StoreError):
    """A reference that resolves to no stored record.

    Attributes
    ----------
    ref : str
        The reference as asked for.
    """

    def __init__(self, ref: str) -> None:
        super().__init__(f"a record must be stored under the reference asked for; found none for {ref!r}")
        self.ref = ref


class HouseholdError(ScentwalkError):
    """Pets, devices, bindings or the zone are missing or contradict each other."""


class ImportRefused(ScentwalkError):
    """A file was refused whole; nothing of it was stored.

    Attributes
    ----------
    source : str
        The file's name.
    line : int | None
        1-based line, where the format has lines.
    field : str | None
        The field that broke the rule.
    """

    def __init__(self, source: str, problem: str, *, line: int | None = None, field: str | None = None) -> None:
        where = source if line is None else f"{source}, line {line}"
        what = problem if field is None else f"{field}: {problem}"
        super().__init__(f"{where}: {what}")
        self.source = source
        self.line = line
        self.field = field


class PayloadError(ScentwalkError):
    """Bytes from a device that cannot be read; the row goes to the dead letters.

    Attributes
    ----------
    reason : str
        A short stable word for counting (``cut_short``, ``unknown_kind``...).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BrokerError(ScentwalkError):
    """The MQTT broker cannot be started or reached."""


class RadioError(ScentwalkError):
    """The Bluetooth adapter is absent, ambiguous, or does not do what it is told.

    Never ends the hub: the radio is degraded, everything else goes on.
    """


class PortBusy(ScentwalkError):
    """A local TCP port is in use.

    Attributes
    ----------
    port : int
    option : str
        The command-line option that chooses another port.
    """

    def __init__(self, port: int, *, purpose: str, option: str) -> None:
        super().__init__(
            f"port {port} on 127.0.0.1 must be free for {purpose}, but another program listens there; "
            f"choose another with {option} PORT"
        )
        self.port = port
        self.option = option


class GraphError(ScentwalkError):
    """Belief, seeds or edges outside what the walk and the assembly accept."""


class BeliefError(GraphError):
    """A mass outside [0, 1], or total conflict (K = 1) between two witnesses."""


class NotConverged(GraphError):
    """An iteration ended without its certificate.

    Attributes
    ----------
    iterations : int
    residual : float
    tol : float
    """

    def __init__(self, what: str, *, iterations: int, residual: float, tol: float) -> None:
        super().__init__(f"{what}: the residual must fall to {tol:g}, is {residual:g} after {iterations} iterations")
        self.iterations = iterations
        self.residual = residual
        self.tol = tol


class MeasureError(ScentwalkError):
    """Arrays that break their declared shape: a caller's mistake, not bad data."""
