"""The JSON doors: ask, open a record, and the command line's writes.

``/api/command`` is how a command reaches the one writer while a gateway holds the lock. It
is open on loopback only and asks for this start's token, which stands in a file that only
the gateway's own user can read: whoever can read it could write the database itself.
"""

from __future__ import annotations

import hmac
import json
import stat
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.ask.records import heading, open_record
from gateway.errors import ConfigError, ScentwalkError, UnknownRecord
from gateway.links.loopback import TOKEN_HEADER
from gateway.model import RecordRef
from gateway.web.radio import radio_json
from gateway.web.services import Done, Services

__all__ = ["TOKEN_HEADER", "Api", "read_token"]

_LEAST_TOKEN_CHARACTERS = 32
_LOOPBACK = frozenset({"127.0.0.1", "::1"})


def read_token(path: Path) -> str:
    """Read the token of this start.

    Raises
    ------
    ConfigError
        Others than the owner may read the file, or it holds no token.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConfigError(f"{path} must be readable by its owner only (0600), has mode {mode:04o}")
    token = path.read_text(encoding="ascii").strip()
    if len(token) < _LEAST_TOKEN_CHARACTERS:
        raise ConfigError(
            f"{path} must hold a token of at least {_LEAST_TOKEN_CHARACTERS} characters, holds {len(token)}"
        )
    return token


def _problem(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


async def _told(request: Request) -> dict[str, Any] | None:
    """The request's JSON object, or None where its body is none."""
    try:
        told = json.loads(await request.body())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


class Api:
    """The JSON routes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._token = None if services.token_file is None else read_token(services.token_file)

    async def ask(self, request: Request) -> Response:
        """``{"question": text, "after": number?}`` to the Answer JSON with its ``number``."""
        told = await _told(request)
        after = None if told is None else told.get("after")
        if told is None or not isinstance(told.get("question"), str) or not isinstance(after, int | None):
            return _problem(
                400, 'the body must be {"question": "..."}, with "after": NUMBER where it follows an answer'
            )
        try:
            return JSONResponse(await run_in_threadpool(self._asked, told["question"], after))
        except ScentwalkError as problem:
            return _problem(503, str(problem))

    def _asked(self, question: str, after: int | None) -> dict[str, Any]:
        number, _ = self._services.ask(question, after=after)
        with self._services.snapshot() as reader:
            stored = reader.answer(number)
        assert stored is not None, f"the answer just given must be stored under {number}"
        body: dict[str, Any] = json.loads(stored[2])
        return {"number": number, **body}

    def record(self, request: Request) -> Response:
        """``?ref=kind:key`` to the record's title, source, lines, marks and parts."""
        text = request.query_params.get("ref", "")
        try:
            ref = RecordRef(text)
            with self._services.snapshot() as reader:
                record = open_record(reader, ref)
                parts = [{"ref": part.text, "title": heading(reader, part)} for part in record.parts]
        except (ValueError, UnknownRecord) as problem:
            return _problem(404, str(problem))
        return JSONResponse(
            {
                "ref": record.ref.text,
                "title": record.title,
                "source": record.source,
                "at_ms": record.at_ms,
                "lines": list(record.lines),
                "marks": [list(mark) for mark in record.marks],
                "parts": parts,
            }
        )

    def radio(self, request: Request) -> Response:  # noqa: ARG002  # every endpoint takes the request
        """How the Bluetooth radio stands and what it counted since the hub started."""
        return JSONResponse(radio_json(self._services.radio()))

    async def command(self, request: Request) -> Response:
        """``{"command": name, "args": {name: text}}`` with the token, from this machine only."""
        client = "" if request.client is None else request.client.host
        given = request.headers.get(TOKEN_HEADER, "")
        if self._token is None or client not in _LOOPBACK:
            return _problem(403, "commands are taken from this machine only")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return _problem(403, f"{TOKEN_HEADER} must carry this start's token")
        told = await _told(request)
        args = None if told is None else told.get("args", {})
        if told is None or not isinstance(told.get("command"), str) or not _texts(args):
            return _problem(400, 'the body must be {"command": name, "args": {name: text}}')
        assert isinstance(args, dict)
        try:
            done: Done = await run_in_threadpool(self._services.command, told["command"], args)
        except ScentwalkError as problem:
            return _problem(422, str(problem))
        return JSONResponse({"done": done.text, "opens": None if done.opens is None else done.opens.text})


def _texts(args: object) -> bool:
    return isinstance(args, dict) and all(isinstance(value, str) for value in args.values())
