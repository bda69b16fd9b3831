"""When a radio counts as quiet, and what is done about it. Pure: seconds in, the next step out.

Nothing heard for a minute is noticed, whatever the reason: a radio that hangs looks like a home
with no device in reach. So the steps are mild first: stop and start the scan three times, power
the adapter off and on, then say that the radio is degraded and go on trying, ever more rarely
loudly. Whatever is heard ends it.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Step", "Watch"]


class Step(StrEnum):
    """What is to be done now."""

    RESTART = "restart"
    POWER_CYCLE = "power_cycle"
    DEGRADE = "degrade"


_LADDER = (Step.RESTART, Step.RESTART, Step.RESTART, Step.POWER_CYCLE, Step.DEGRADE)


class Watch:
    """Steady seconds, from any start; the same ones for every call.

    Attributes
    ----------
    quiet_s : float or None
        Since when nothing was heard, once that was noticed.
    degraded : bool
        Whether every step was tried.
    """

    QUIET_S = 60.0
    """A tracker advertises every second or two, a BTHome sensor at least once a minute."""
    LOOK_S = 10.0
    """How often it is looked at: quiet is noticed at most 70 s after the last advertisement."""
    STEP_S = 20.0
    """Between two steps: a started scan hears a neighbour's phone within seconds."""
    AGAIN_S = 300.0
    """Between two more attempts of a degraded radio; every third one is a power cycle."""

    def __init__(self, now_s: float) -> None:
        self._heard_s = now_s
        self._stepped_s = now_s
        self._steps = 0
        self.quiet_s: float | None = None

    @property
    def degraded(self) -> bool:
        return self._steps >= len(_LADDER)

    def heard(self, now_s: float) -> None:
        """An advertisement or a value came in."""
        self._heard_s = now_s
        self._steps = 0
        self.quiet_s = None

    def failed(self, now_s: float) -> None:
        """The scan could not be started: as quiet as one that hears nothing, from now on."""
        if self.quiet_s is None:
            self.quiet_s = self._heard_s
            self._stepped_s = now_s

    def step(self, now_s: float) -> Step | None:
        """What is to be done, or None: nothing yet."""
        if self.quiet_s is None:
            if now_s - self._heard_s < self.QUIET_S:
                return None
            self.quiet_s = self._heard_s
        elif now_s - self._stepped_s < (self.AGAIN_S if self.degraded else self.STEP_S):
            return None
        self._stepped_s = now_s
        self._steps += 1
        if self._steps <= len(_LADDER):
            return _LADDER[self._steps - 1]
        return Step.POWER_CYCLE if (self._steps - len(_LADDER)) % 3 == 0 else Step.RESTART
