"""What an owner can write down on the page: entries, foods, notes, and "that's wrong".

Each form is a row of a table. A form posts named texts to one command; a refusal brings the
form back with what was typed and the reason, success moves on to the new record.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.ask.records import heading
from gateway.ask.wording import first_upper
from gateway.errors import HouseholdError, ImportRefused, ScentwalkError
from gateway.measure.days import local_day
from gateway.model import RecordRef
from gateway.ontology.load import load
from gateway.store.reads import Reader
from gateway.web.render import page
from gateway.web.services import Done, Services, is_number
from gateway.web.views import hypothesis_words, record_href

__all__ = ["FORMS", "Field", "Form", "Forms"]


@dataclass(frozen=True, slots=True)
class Field:
    """One thing to fill in. ``kind`` is text, textarea, date, pet, file or hidden."""

    name: str
    label: str
    kind: str = "text"
    hint: str = ""
    required: bool = True
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """A form: where it stands, which command it gives, what it says about itself."""

    path: str
    command: str
    title: str
    about: str
    button: str
    fields: tuple[Field, ...]

    @property
    def has_file(self) -> bool:
        """Whether it sends a file, and so in parts."""
        return any(field.kind == "file" for field in self.fields)


FORMS = (
    Form(
        path="/log",
        command="log",
        title="Write something down",
        about="What no device can see: a treatment, a medicine given, a vomit, a visitor, a bath, a weight.",
        button="Keep this entry",
        fields=(
            Field("pet", "Pet", "pet"),
            Field("what", "What", hint="In a few words, such as flea treatment, vomited, bath.", kind="suggest"),
            Field("at", "Day", "date"),
            Field("every", "Repeats every", hint="For treatments: how long one lasts, such as 30d.", required=False),
        ),
    ),
    Form(
        path="/food",
        command="food",
        title="Add a food",
        about="Copy the list of ingredients from the bag. The hub reads it as it is typed here and nothing else.",
        button="Keep this food",
        fields=(
            Field("pet", "Pet", "pet"),
            Field("name", "Name of the food", hint="As it stands on the bag."),
            Field("label", "Ingredients", "textarea", hint="The whole list, in the label's own words."),
            Field("code", "Number under the bar code", hint="Lets the bowl know the bag again.", required=False),
            Field("at", "Given since", "date"),
        ),
    ),
    Form(
        path="/bought",
        command="bought",
        title="Add a purchase",
        about="What is at home from that day on. It is not taken for a meal: who was given it stays open.",
        button="Keep this purchase",
        fields=(
            Field("product", "What was bought", hint="As it stands on the pack."),
            Field("at", "Day", "date"),
            Field("quantity", "How many", hint="A number, such as 2.", required=False),
            Field("unit", "Of what", hint="Such as bags, cans, kg.", required=False),
            Field("kind", "What kind", hint="Such as food, treat, medicine, flea treatment, litter.", required=False),
            Field("shop", "Where", required=False),
        ),
    ),
    Form(
        path="/note",
        command="note",
        title="Add a vet note",
        about="Type it as it is written. It is quoted word for word and never changed.",
        button="Keep this note",
        fields=(
            Field("pet", "Pet", "pet"),
            Field("at", "Date of the note", "date"),
            Field("author", "Who wrote it", hint="The clinic or the vet.", required=False),
            Field("text", "The note", "textarea"),
        ),
    ),
    Form(
        path="/guide",
        command="passages",
        title="Add a guide",
        about="A book or article about pets. The hub cites it by chapter and paragraph, and follows nothing in it.",
        button="Keep this guide",
        fields=(
            Field("title", "Title", hint="As answers should name it.", required=False),
            Field("file", "File", "file", hint="PDF with text, EPUB, Markdown or plain text, at most 15 MB."),
            Field(
                "text",
                "Or its text",
                "textarea",
                hint="A chapter begins with a line such as: # 1. Skin",
                required=False,
            ),
        ),
    ),
    Form(
        path="/wrong",
        command="wrong",
        title="That's wrong",
        about="No answer will use this link any more. It can be undone, and later answers say that you marked it.",
        button="Mark as wrong",
        fields=(
            Field("ref", "", "hidden", required=False),
            Field("hypothesis", "", "hidden", required=False),
            Field("reason", "Why, in your words"),
        ),
    ),
)

_LONGEST_TEXT = 200_000
"""Characters of one field: twice the longest guide chapter anybody would paste."""

_LARGEST_FILE = 15_000_000
"""Bytes of an uploaded file; the whole message may have 16 MiB."""
_LONGEST_NAME = 120
_NOT_SHOWN = re.compile(r"[^\w .,()'+&-]")


class Forms:
    """The writing routes."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> list[Route]:
        """One route a form, the undo of a mark, and the answers to a notice and to whether a device was replaced."""
        return [
            *(Route(form.path, self._endpoint(form), methods=["GET", "POST"]) for form in FORMS),
            Route("/undo", self.undo, methods=["POST"]),
            Route("/notice", self.notice, methods=["POST"]),
            Route("/replacement", self.replacement, methods=["POST"]),
        ]

    def _endpoint(self, form: Form) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if request.method == "GET":
                typed = dict(request.query_params.items())
                return await run_in_threadpool(self._show, form, typed, "")
            async with request.form() as posted:
                return await run_in_threadpool(self._keep, form, posted)

        return endpoint

    def _show(self, form: Form, typed: dict[str, str], problem: str) -> Response:
        with self._services.snapshot() as reader:
            filled = tuple(self._filled(field, typed, reader) for field in form.fields)
            subject = _subject(reader, typed)
        return page(
            self._services,
            "form.html",
            status=422 if problem else 200,
            form=replace(form, fields=filled),
            problem=problem,
            subject=subject,
        )

    def _filled(self, field: Field, typed: dict[str, str], reader: Reader) -> Field:
        home = reader.household()
        value, options = typed.get(field.name, ""), field.options
        if field.kind == "pet":
            options = tuple((pet.id, pet.name) for pet in home.pets)
        elif field.kind == "suggest":
            options = tuple((kind.words[0], "") for kind in load().log_kinds.values() if kind.words)
        elif field.kind == "date" and not value and home.zones:
            value = local_day(self._services.now_ms(), home.zones)
        return replace(field, value=value, options=options)

    def _keep(self, form: Form, posted: FormData) -> Response:
        typed = {field.name: _typed(posted.get(field.name)) for field in form.fields if field.kind != "file"}
        problem = _problem(form, typed)
        if problem:
            return self._show(form, typed, problem)
        given = {name: value for name, value in typed.items() if value}
        try:
            if form.has_file:
                given |= self._from_file(posted.get("file"), typed.get("text", ""))
            done = self._services.command(form.command, given)
        except ScentwalkError as refusal:
            return self._show(form, typed, _reason(refusal))
        return RedirectResponse(_onward(typed, done), 303)

    def _from_file(self, upload: UploadFile | str | None, text: str) -> dict[str, str]:
        """An uploaded guide's text and the name of its file; nothing but a source where its text was typed.

        Raises
        ------
        ImportRefused
            No file and no text, both, or a file that cannot be read.
        """
        size = upload.size or 0 if isinstance(upload, UploadFile) else 0
        if not isinstance(upload, UploadFile) or not (size or upload.filename):
            if not text:
                raise ImportRefused("guide", "A guide must be a file or its text, neither was given.")
            return {"source": "typed here"}
        name = _file_name(upload.filename or "")
        if text:
            raise ImportRefused(name, f"A guide must be a file or its text, both were given: {name} and a text.")
        if size > _LARGEST_FILE:
            raise ImportRefused(
                name,
                f"A guide must have at most {_LARGEST_FILE:,} bytes here, {name} has {size:,}. "
                "A larger one can be imported on the hub: scentwalk import passages FILE",
            )
        return {"text": self._services.read_guide(name, upload.file), "source": name}

    async def undo(self, request: Request) -> Response:
        """Take a mark back and return to the link it stood on."""
        posted = await request.form()
        number, ref = str(posted.get("number", "")), str(posted.get("ref", ""))
        if not is_number(number):
            raise HTTPException(404)
        try:
            await run_in_threadpool(self._services.command, "undo", {"number": number})
            return RedirectResponse(f"{record_href(RecordRef(ref))}?saved=1", 303)
        except (ImportRefused, ValueError):  # undone already (a second click), or a mark on no link
            return RedirectResponse("/marks", 303)

    async def notice(self, request: Request) -> Response:
        """Keep the owner's answer to a hard floor and return to the front page."""
        posted = await request.form()
        answer = {name: str(posted.get(name, "")) for name in ("notice", "answer")}
        try:
            await run_in_threadpool(self._services.command, "answer_notice", answer)
        except ImportRefused:  # answered already (a second click), or no such notice: the page shows what stands
            return RedirectResponse("/", 303)
        return RedirectResponse("/?saved=1", 303)

    async def replacement(self, request: Request) -> Response:
        """Keep whether a sender replaces a device, or whose it is, and return to the front page."""
        posted = await request.form()
        answer = {name: str(posted[name]) for name in ("device", "old", "pets") if posted.get(name)}
        try:
            await run_in_threadpool(self._services.command, "bind" if "pets" in answer else "replace", answer)
        except (ImportRefused, HouseholdError):  # answered already (a second click): the page shows what stands
            return RedirectResponse("/", 303)
        return RedirectResponse("/?saved=1", 303)


def _typed(value: UploadFile | str | None) -> str:
    """What a field of text was given; a file in its place is nothing."""
    return value.strip() if isinstance(value, str) else ""


def _file_name(sent: str) -> str:
    """A file's name without folders and signs that no line should show; browsers send what they like."""
    last = re.split(r"[/\\]", sent)[-1]
    return _NOT_SHOWN.sub("", last).strip()[:_LONGEST_NAME] or "a guide without a name"


def _reason(refusal: ScentwalkError) -> str:
    """Why a command refused, without the name of the file that a form is not."""
    text = str(refusal)
    return text.removeprefix(f"{refusal.source}: ") if isinstance(refusal, ImportRefused) else text


def _onward(typed: dict[str, str], done: Done) -> str:
    """Where a kept form leads: to the new record, to the marked link, to the marks, or home."""
    if done.opens is not None:
        return f"{record_href(done.opens)}?saved=1"
    if typed.get("ref"):
        return f"{record_href(RecordRef(typed['ref']))}?saved=1"
    return "/marks" if typed.get("hypothesis") else "/?saved=1"


def _problem(form: Form, typed: dict[str, str]) -> str:
    for field in form.fields:
        if field.kind == "file":
            continue
        if field.required and not typed[field.name]:
            return f"{field.label} must be filled in, is empty."
        if len(typed[field.name]) > _LONGEST_TEXT:
            found = len(typed[field.name])
            return f"{field.label} must have at most {_LONGEST_TEXT:,} characters, has {found:,}."
    if form.command == "wrong" and not (typed["ref"] or typed["hypothesis"]):
        return "A mark must name the link it is about; open it from an answer."
    return ""


def _subject(reader: Reader, typed: dict[str, str]) -> str:
    """What a mark is about, in words."""
    if typed.get("hypothesis"):
        return first_upper(hypothesis_words(typed["hypothesis"], reader.household(), reader.vertex_labels()))
    try:
        return heading(reader, RecordRef(typed["ref"])) if typed.get("ref") else ""
    except ValueError:
        return ""
