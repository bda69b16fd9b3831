"""The page's routes: an HTTP request in, a rendered page or a redirect out.

Every read opens one snapshot and closes it; every write goes through ``Services.command``
or ``Services.ask``. Nothing is computed here, and no route is needed by a script: the page
has none.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.ask.records import vertex_words, when
from gateway.ask.wording import amount, day, day_range
from gateway.errors import ScentwalkError, UnknownRecord
from gateway.model import RecordRef
from gateway.store.reads import Reader
from gateway.web.answers import read_answer
from gateway.web.api import Api
from gateway.web.chart import draw_chart, read_chain
from gateway.web.doorkeeper import HEADERS, BodyLimit, Doorkeeper
from gateway.web.draw import draw_trend
from gateway.web.forms import Forms
from gateway.web.learning import read_learning
from gateway.web.notices import changed_words, forgotten_words
from gateway.web.radio import radio_page
from gateway.web.render import asset, page
from gateway.web.services import Services, is_number
from gateway.web.together import read_together
from gateway.web.trend import read_trend
from gateway.web.views import (
    dead_letter_lines,
    device_page,
    front_page,
    link_to,
    mark_lines,
    near_lines,
    record_href,
    record_page,
    sources,
)

__all__ = ["create_app"]

_LARGEST_BODY_BYTES = 16 * 2**20
"""An imported file may come in over the command door; no form needs a hundredth of it."""

_DEAD_LETTERS_SHOWN = 200

_TREND_SIZES = ((736.0, 250.0), (328.0, 230.0))
_CHART_SIZES = ((640.0, 3), (328.0, 2))
"""Drawn twice, for a page and for a phone of 360 px; the stylesheet shows one of them."""

_EXPLAINED = {
    400: ("That could not be read", "What was sent is no form of this page, or a field of it is longer than 1 MB."),
    404: ("There is nothing here", "No page and no record is kept under this address."),
    405: ("This can't be done here", "The address exists, but not for what was asked of it."),
    413: (
        "That was too long",
        "A message to this page may have at most 16 MiB. A larger guide is read by: scentwalk import passages FILE",
    ),
    500: ("Something broke", "The hub made a mistake while drawing this page. What is stored is untouched."),
}


class _Pages:
    """The reading routes. Synchronous: Starlette runs each in a worker thread."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def front(self, request: Request) -> Response:
        """Question box first, then pets, devices and counters."""
        with self._services.snapshot() as reader:
            view = front_page(reader, now_ms=self._services.now_ms())
        saved = request.query_params.get("saved") == "1"
        return page(self._services, "front.html", view=view, saved=saved, question="", href=record_href)

    async def ask(self, request: Request) -> Response:
        """Answer and move on to the answer's own address, so that a reload asks nothing twice."""
        fields = await request.form() if request.method == "POST" else request.query_params
        text, after = str(fields.get("q", "")), str(fields.get("after", ""))
        foreign = request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}
        unasked = foreign or not text or request.method == "HEAD" or "sec-purpose" in request.headers  # a prefetch
        if request.method != "POST" and unasked:
            return await run_in_threadpool(self._prefilled, text)
        number, _ = await run_in_threadpool(self._services.ask, text, after=int(after) if is_number(after) else None)
        return RedirectResponse(f"/answer/{number}", 303)

    def _prefilled(self, text: str) -> Response:
        """A link from elsewhere may fill the question in; asking it stays with the owner."""
        with self._services.snapshot() as reader:
            view = front_page(reader, now_ms=self._services.now_ms())
        return page(self._services, "front.html", view=view, saved=False, question=text, href=record_href)

    def answer(self, request: Request) -> Response:
        """A stored answer as it was given, with what has changed since."""
        number = int(request.path_params["number"])
        with self._services.snapshot() as reader:
            stored = reader.answer(number) if is_number(str(number)) else None
            if stored is None:
                raise HTTPException(404)
            view = read_answer(number, stored)
            chain = read_chain(reader, view.chain)
            return page(
                self._services,
                "answer.html",
                view=view,
                asked=when(view.as_of_ms, reader.household()),
                restated=tuple(link_to(reader, ref) for ref in reader.restated(number)),
                changed=(*changed_words(reader, number), *forgotten_words(reader, number)),
                numbers={receipt.claim: place for place, receipt in enumerate(view.receipts, start=1)},
                hypotheses={receipt.claim: _named(receipt.hypotheses(), reader) for receipt in view.receipts},
                sources={receipt.claim: sources(reader, receipt.refs, receipt.window) for receipt in view.receipts},
                chain=chain,
                near=near_lines(reader, view.near_misses),
                whose=view.meant(pet.name for pet in reader.household().pets),
                charts=tuple(draw_chart(chain, width=width, columns=columns) for width, columns in _CHART_SIZES),
                href=record_href,
            )

    def record(self, request: Request) -> Response:
        """The stored thing behind a citation."""
        try:
            ref = RecordRef(request.path_params["ref"])
        except ValueError:
            raise UnknownRecord(request.path_params["ref"]) from None
        with self._services.snapshot() as reader:
            view = record_page(reader, ref)
        return page(self._services, "record.html", view=view, saved=request.query_params.get("saved") == "1")

    def device(self, request: Request) -> Response:
        """One device: when it was heard, what it said of itself, its latest events."""
        with self._services.snapshot() as reader:
            view = device_page(reader, request.path_params["device"], now_ms=self._services.now_ms())
        if view is None:
            raise HTTPException(404)
        return page(self._services, "device.html", view=view)

    def series(self, request: Request) -> Response:
        """A series' last 90 days: drawing, events, numbers."""
        with self._services.snapshot() as reader:
            trend = read_trend(reader, request.path_params["series"], now_ms=self._services.now_ms())
        if trend is None:
            raise HTTPException(404)
        return page(
            self._services,
            "series.html",
            trend=trend,
            drawings=tuple(draw_trend(trend, width=width, height=height) for width, height in _TREND_SIZES),
            href=record_href,
            amount=amount,
            day=day,
            day_range=day_range,
        )

    def learning(self, request: Request) -> Response:
        """What is there of a pet while its history is short."""
        with self._services.snapshot() as reader:
            view = read_learning(reader, request.path_params["pet"], now_ms=self._services.now_ms())
        if view is None:
            raise HTTPException(404)
        return page(self._services, "learning.html", view=view)

    def together(self, request: Request) -> Response:  # noqa: ARG002  # every endpoint takes the request
        """Which things on file belong together."""
        with self._services.snapshot() as reader:
            groups = read_together(reader, now_ms=self._services.now_ms())
        return page(self._services, "together.html", groups=groups)

    def dead_letters(self, request: Request) -> Response:  # noqa: ARG002  # every endpoint takes the request
        """The latest messages that could not be read, with reason and first bytes."""
        with self._services.snapshot() as reader:
            lines = dead_letter_lines(reader, limit=_DEAD_LETTERS_SHOWN)
        return page(self._services, "deadletters.html", lines=lines, shown=_DEAD_LETTERS_SHOWN)

    def marks(self, request: Request) -> Response:  # noqa: ARG002  # every endpoint takes the request
        """What the owner has marked wrong and not taken back."""
        with self._services.snapshot() as reader:
            marks = mark_lines(reader)
        return page(self._services, "marks.html", marks=marks)

    def static(self, request: Request) -> Response:
        """The stylesheet and the icon."""
        found = asset(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return found

    def radio(self, request: Request) -> Response:  # noqa: ARG002
        """How the Bluetooth radio stands, and what it counted."""
        state = self._services.radio()
        with self._services.snapshot() as reader:
            view = None if state is None else radio_page(state, reader.household())
        return page(self._services, "radio.html", view=view)

    # -- what went wrong, politely ---------------------------------------------------------------

    def unknown_record(self, request: Request, problem: Exception) -> Response:  # noqa: ARG002
        """A citation that opens nothing."""
        ref = problem.ref if isinstance(problem, UnknownRecord) else ""
        return page(
            self._services,
            "message.html",
            status=404,
            title="No such record",
            text="Nothing is stored under this reference. It may have been removed with its source.",
            detail=ref,
        )

    def refused(self, request: Request, problem: Exception) -> Response:  # noqa: ARG002
        """An error of ours that says what must hold and what was found."""
        return page(
            self._services, "message.html", status=503, title="This can't be shown now", text=str(problem), detail=""
        )

    def http_error(self, request: Request, problem: Exception) -> Response:  # noqa: ARG002
        """404 and its kin."""
        status = problem.status_code if isinstance(problem, HTTPException) else 500
        title, text = _EXPLAINED.get(status, ("This can't be done", "The page could not do what was asked."))
        return page(self._services, "message.html", status=status, title=title, text=text, detail="")

    def broken(self, request: Request, problem: Exception) -> Response:
        """A mistake of ours. This page is made outside the doorkeeper, so it brings the headers itself."""
        response = self.http_error(request, problem)
        response.headers.update(HEADERS)
        return response


def _named(hypotheses: tuple[tuple[str, str], ...], reader: Reader) -> tuple[tuple[str, str], ...]:
    """Each cause in words, with the name of its hypothesis."""
    home, labels = reader.household(), reader.vertex_labels()
    return tuple((vertex_words(cause, home, labels), name) for cause, name in hypotheses)


def _health(request: Request) -> Response:  # noqa: ARG001  # every endpoint takes the request
    return PlainTextResponse("ok\n")


def create_app(services: Services) -> Starlette:
    """The whole page as an ASGI application.

    Parameters
    ----------
    services : Services
        What the page may use of the house.
    """
    pages, forms, api = _Pages(services), Forms(services), Api(services)
    return Starlette(
        routes=[
            Route("/", pages.front),
            Route("/ask", pages.ask, methods=["GET", "POST"]),
            Route("/answer/{number:int}", pages.answer),
            Route("/record/{ref:path}", pages.record),
            Route("/device/{device}", pages.device),
            Route("/series/{series}", pages.series),
            Route("/learning/{pet}", pages.learning),
            Route("/together", pages.together),
            Route("/deadletters", pages.dead_letters),
            Route("/radio", pages.radio),
            Route("/marks", pages.marks),
            *forms.routes(),
            Route("/api/ask", api.ask, methods=["POST"]),
            Route("/api/record", api.record),
            Route("/api/radio", api.radio),
            Route("/api/command", api.command, methods=["POST"]),
            Route("/health", _health),
            Route("/static/{name}", pages.static),
        ],
        middleware=[
            Middleware(Doorkeeper, hosts=services.hosts),
            Middleware(GZipMiddleware, minimum_size=500),
            Middleware(BodyLimit, most=_LARGEST_BODY_BYTES),
        ],
        exception_handlers={
            UnknownRecord: pages.unknown_record,
            ScentwalkError: pages.refused,
            HTTPException: pages.http_error,
            Exception: pages.broken,
        },
    )
