"""Templates to bytes: one environment, escaping always on, an undefined name is an error."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from gateway.web.services import Services

__all__ = ["asset", "page"]

_TYPES = {"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("gateway.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset_bytes(name: str) -> bytes:
    return resources.files("gateway.web").joinpath("static", name).read_bytes()


@cache
def _fingerprint() -> str:
    """Changes when the stylesheet or the icon does, so that both may be cached for good."""
    return hashlib.sha256(b"".join(_asset_bytes(name) for name in sorted(_TYPES))).hexdigest()[:8]


def asset(name: str) -> Response | None:
    """A packaged file, or None where there is none of that name."""
    if name not in _TYPES:
        return None
    return Response(
        _asset_bytes(name),
        media_type=_TYPES[name],
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


def page(services: Services, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """A template filled with ``values``, as a whole page."""
    text = (
        _environment()
        .get_template(template)
        .render(version=services.version, banner=services.banner(), fingerprint=_fingerprint(), **values)
    )
    return HTMLResponse(text, status_code=status)
