"""Fixtures every test file may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)  # no test asserts timing, this one neither
settings.load_profile("house")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of cases and data beside the checkout; a plain clone has none."""
    if not SHARED.is_dir():
        pytest.skip("the shared cases stand beside the checkout (../shared), and are absent here")
    return SHARED
