"""What can be answered here: the device that measures it, or the one that would.

In: the slots of a question and the household. Out: the answer class, which is the class of
the first claim that can be made, or ``no_data:<device kind>``, ``partial:<device kind>``,
``clarify``, ``refuse``, ``GENERAL``. Whether a *record* exists is the answer's business.
"""

from __future__ import annotations

from gateway.model import Household
from gateway.ontology import load as tables

__all__ = ["answer_class"]

_FIXED = {
    "ingredient_lookup": "REFERENCE",
    "reference": "REFERENCE",
    "provenance": "REFERENCE",
    "med_safety": "REFERENCE",
    "switch_back": "REFERENCE",
    "record_lookup": "RECORDED",
    "med_timing": "RECORDED",
    "purchases": "RECORDED",
    "correction": "RECORDED",
    "device_status": "MEASURED",
    "overview": "MEASURED",
    "need_vet": "MEASURED",
    "vet_summary": "MEASURED",
    "why_notice": "MEASURED",
}


def answer_class(
    intent: str,
    *,
    pets: tuple[str, ...],
    metric: str | None,
    subjects: tuple[str, ...],
    household: Household,
    now_ms: int,
    general: bool,
    miscounted: bool,
    known_food: bool,
) -> str:
    """The answer class of a question that names no danger.

    ``general`` = advice about animals that no record holds; ``miscounted`` = "both dogs"
    where three live; ``known_food`` = some thing asked about is in a vocabulary.
    """
    if intent == "out_of_scope":
        return "GENERAL" if general else "refuse"
    if pets == ("?",) or miscounted:
        return "clarify"
    if intent == "food_ok":
        return "REFERENCE" if known_food else "conservative"
    if intent in _FIXED:
        return _FIXED[intent]
    if intent == "normal_check" and not pets:
        return "REFERENCE"
    if metric is None:
        recorded = any(subject.startswith(("med:", "place:", "food:treat")) for subject in subjects)
        recorded |= intent == "event_check" or (intent == "event_when" and "event:food_change" not in subjects)
        return "RECORDED" if recorded else "MEASURED"
    return _by_device(intent, pets, metric, household, now_ms)


def _by_device(intent: str, pets: tuple[str, ...], metric: str, household: Household, now_ms: int) -> str:
    """MEASURED where a device here captures it, RECORDED where people log it, else the device
    that would know; a comparison of pets needs all of them.
    """
    observed = tables.load().properties[metric]
    kinds = {device.id: device.kind for device in household.devices}
    capturing = [d for d, kind in kinds.items() if kind in observed.captured_by]
    if not pets:
        covered, missing = bool(capturing), False
    else:
        served = {pet for device in capturing for pet in household.bindings_at(device, now_ms)} & set(pets)
        # one pet alone cannot be compared
        covered, missing = len(served) >= (2 if intent == "compare_pets" else 1), not set(pets) <= served
    device = observed.captured_by[0]
    if covered and not missing:
        return "MEASURED"
    if observed.evidence_class == "RECORDED":
        return "RECORDED"
    if covered:
        return f"partial:{device}"
    return f"no_data:{device}"
