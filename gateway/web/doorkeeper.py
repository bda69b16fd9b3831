"""Who may come in: requests addressed to this page, and writes that come from it.

A home page on loopback has two enemies in the owner's own browser: a foreign site whose
name was pointed at 127.0.0.1 (DNS rebinding; the Host header gives it away) and a foreign
site that posts a form here (the Origin header does). Both are refused before any room is
entered, and every response says what a browser may do with it: load nothing from
elsewhere, run no script, be framed by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "BodyLimit", "Doorkeeper"]

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: under it browsers send "Origin: null" with our own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_READS = frozenset({"GET", "HEAD"})


def _host_name(header: str) -> str | None:
    """The Host header without its port; None where it is not a host at all."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


class Doorkeeper:
    """ASGI middleware around the whole page.

    Parameters
    ----------
    app : ASGIApp
    hosts : frozenset of str
        Host names this page answers to, lower case, without port.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await refusal(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _host_name(host) not in self._hosts:
            return PlainTextResponse(
                f"The Host header must name this hub ({', '.join(sorted(self._hosts))}), is {host!r}.\n", 421
            )
        if scope["method"] in _READS:
            return None
        origin = headers.get("origin")
        if origin is not None:
            own = f"{scope['scheme']}://{host}"
            same, found = origin == own, origin
        else:  # no browser of today posts without Origin; the command line does
            found = headers.get("sec-fetch-site", "none")
            same = found in {"same-origin", "none"}
        return (
            None if same else PlainTextResponse(f"A change must be asked for by this page, came from {found}.\n", 403)
        )


class BodyLimit:
    """ASGI middleware: a body that is too long is a 413, as a page of ours that says how long it may be.

    What's too long is taken in and dropped first, up to ``_DRAINED`` times the limit: a browser that is
    still sending shows a broken connection and not the answer.

    Parameters
    ----------
    app : ASGIApp
    most : int
        Bytes of a request's body.
    """

    _DRAINED = 8

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen <= self._most:
                return message
            while message.get("more_body") and seen <= self._DRAINED * self._most:
                message = await receive()
                seen += len(message.get("body", b""))
            raise HTTPException(413)

        await self._app(scope, limited, send)
