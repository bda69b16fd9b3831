"""The page as a browser and as HTTP see it: real uvicorn, real SQLite, real Chromium, axe-core."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from urllib.parse import quote, unquote, urlsplit

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from gateway.ask.answer import answer_json
from gateway.ask.ask import ask
from gateway.ask.records import open_record, record_text
from gateway.errors import ConfigError
from gateway.model import RecordRef
from gateway.store import Database, Snapshot
from gateway.web import create_app
from gateway.web.api import TOKEN_HEADER
from gateway.web.views import record_href
from tests.web_home import (
    ATE,
    FOOD_SET_REF,
    HOSTILE,
    LABEL_REF,
    LOG_REF,
    NOTE_REF,
    NOW_MS,
    PASSAGE_REF,
    TOKEN,
    Home,
    answer_body,
    day_row,
    fill,
    served,
)

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    f"--{flag}"
    for flag in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]
DAY_REF = "day:max.scratching/2026-07-08"
ROUTES = (
    "/",
    "/answer/1",
    f"/record/{DAY_REF}",
    "/record/day:max.intake/2026-07-13",
    record_href(FOOD_SET_REF),
    record_href(LABEL_REF),
    record_href(PASSAGE_REF),
    record_href(NOTE_REF),
    record_href(LOG_REF),
    record_href(ATE.ref),
    "/device/bowl-max",
    "/device/bowl-new",
    "/series/max.scratching",
    "/series/luna.intake",
    "/series/max.restless",
    "/learning/max",
    "/learning/odd",
    "/together",
    "/deadletters",
    "/marks",
    "/log",
    "/food",
    "/bought",
    "/note",
    "/guide",
    f"/wrong?ref={quote(ATE.ref.text)}",
    "/ask?q=",
    "/nowhere",
    "/record/log:never",
)

ONE_A_TEMPLATE = (
    "/",
    "/answer/1",
    record_href(LABEL_REF),
    record_href(ATE.ref),
    "/device/bowl-max",
    "/series/luna.intake",
    "/learning/luna",
    "/together",
    "/deadletters",
    "/marks",
    "/note",
    "/nowhere",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("web") / "home.db"
    fill(path)
    return path


@pytest.fixture(scope="module")
def shown(filled):
    """The page over a database that no test of this module writes to."""
    with served(Home(filled).services()) as address, httpx2.Client(base_url=address) as client:
        yield client


@pytest.fixture
def home(filled, tmp_path):
    """A copy of the home that a test may write to."""
    path = tmp_path / "home.db"
    with Snapshot(filled) as whole:
        whole._db.execute("COMMIT")  # VACUUM INTO wants no open read
        whole._db.execute("PRAGMA query_only = OFF")
        whole._db.execute("VACUUM INTO ?", (str(path),))
    return Home(path)


@pytest.fixture
def writable(home, tmp_path):
    """A page that takes writes, with the command door open."""
    token_file = tmp_path / "token"
    token_file.touch(mode=0o600)
    token_file.write_text(TOKEN, encoding="ascii")
    with served(home.services(token_file)) as address, httpx2.Client(base_url=address) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    if shutil.which(CHROMIUM) is None:
        pytest.fail("the page is tested in Debian's chromium, which must be installed; found none at /usr/bin/chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def hrefs(page: str) -> set[str]:
    """Every address on a page of ours, unescaped."""
    found = re.findall(r'(?:href|action)="([^"]+)"', page)
    return {address.replace("&amp;", "&").replace("&#39;", "'").replace("&#34;", '"') for address in found}


# --- what a browser may do with it ----------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
def test_every_page_forbids_scripts_and_foreign_loads_and_contains_none(shown, route):
    answer = shown.get(route)
    policy = answer.headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in answer.text
    assert "style=" not in answer.text
    assert not [address for address in hrefs(answer.text) if address.startswith(("http", "//"))]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::1", "10.0.0.9"]
)
def test_a_request_under_another_host_name_is_refused(shown, host):
    answer = shown.get("/", headers={"Host": host})
    assert answer.status_code == 421
    assert "Max" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:8080"])
def test_this_machine_is_served_under_its_own_names(shown, host):
    assert shown.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://{host}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("route", ["/ask", "/log", "/undo", "/api/ask", "/api/command"])
def test_a_write_from_a_foreign_page_is_refused_and_nothing_reaches_the_house(home, writable, route, headers):
    told = {name: value.format(host=writable.base_url.netloc.decode()) for name, value in headers.items()}
    answer = writable.post(route, data={"q": "How is Max?"}, headers=told | {TOKEN_HEADER: TOKEN})
    assert answer.status_code == 403
    assert home.heard == []


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Purpose": "prefetch"}])
def test_a_link_nobody_clicked_here_fills_the_question_in_and_asks_nothing(home, writable, headers):
    assert writable.head("/ask", params={"q": "Is Max eating less?"}).status_code == 200
    answer = writable.get("/ask", params={"q": "Is Max eating less?"}, headers=headers)
    assert answer.status_code == 200
    assert 'value="Is Max eating less?"' in answer.text
    assert home.heard == []


def test_what_an_owner_or_a_device_wrote_is_shown_as_text_on_every_page(shown):
    seen = 0
    for route in ROUTES:
        page = shown.get(route).text
        assert HOSTILE not in page
        seen += "&lt;script&gt;" in page
    assert seen >= 4  # a pet's name, a note, an answer's quote, a dead letter's detail


# --- asking ---------------------------------------------------------------------------------------


def test_a_question_leads_to_the_address_of_its_stored_answer(home, writable):
    answer = writable.post("/ask", data={"q": "Why is Max scratching more?"})
    assert answer.status_code == 303
    assert home.heard == [("ask", ("Why is Max scratching more?", None))]
    page = writable.get(answer.headers["location"])
    assert "Why is Max scratching more?" in page.text
    assert "139 s a day against his usual 99" in page.text


def test_a_question_asked_on_an_answer_follows_it(home, writable):
    page = writable.get("/answer/1").text
    assert 'name="after" value="1"' in page
    writable.post("/ask", data={"q": "How do you know?", "after": "1"})
    assert home.heard == [("ask", ("How do you know?", 1))]


def test_sentences_stand_in_the_answers_own_order_with_the_citation_before_the_stop(shown):
    page = re.sub(r"<[^>]+>", "", shown.get("/answer/1").text)
    text = " ".join(page.split())
    first, second = text.index("Yes, clearly more"), text.index("139 s a day")
    assert first < second < text.index("Put together by the hub")
    assert "replaced Harbor Whitefish on Jul 5 [bowl]." in text


def test_a_claim_without_a_source_always_carries_its_label(shown):
    text = re.sub(r"<[^>]+>", "", shown.get("/answer/1").text)
    assert "General knowledge, not from your pet's records: Itching has many causes" in " ".join(
        text.replace("&#39;", "'").split()
    )


def test_a_record_that_changed_since_is_named_on_the_answer(home, writable):
    assert "Since this answer" not in writable.get("/answer/1").text
    with Database(home.path) as database, database.transaction() as tx:
        tx.save_day(day_row("max.scratching", "2026-07-08", 150_000))
    page = writable.get("/answer/1").text
    assert "Since this answer was given, 1 of the records" in page
    assert page.index(record_href(FOOD_SET_REF)) > page.index(f'href="/record/{DAY_REF}"')


def test_the_days_a_claim_speaks_of_stand_apart_from_those_it_is_compared_with(shown):
    page = shown.get("/answer/1").text
    before, folded, after = page.partition("compared with 28 earlier days")
    assert folded
    assert before.count('aria-label="Max: scratching, Jul') == 7
    assert after.count('aria-label="Max: scratching, ') == 28


@pytest.mark.parametrize(
    "question",
    [
        "Why is Max scratching more this week?",
        "Is Luna eating less?",
        "Max ate chocolate",
        "How much did Max eat yesterday?",
        "Who rests more, Max or Luna?",
        "",
        "xyzzy " * 2000,
        HOSTILE,
    ],
)
def test_whatever_ask_answers_can_be_shown_and_all_it_cites_opens(home, writable, question):
    with Database(home.path) as database, database.transaction() as tx:
        answer = ask(question, tx, now_ms=NOW_MS)
        refs = tuple(ref for claim in answer.claims for ref in claim.refs)
        number = tx.save_answer(asked_ms=NOW_MS, question=question, body=json.dumps(answer_json(answer)), cites=refs)
    page = writable.get(f"/answer/{number}")
    assert page.status_code == 200
    assert HOSTILE not in page.text
    shown = hrefs(page.text)
    for ref in refs:
        assert record_href(ref) in shown
        assert writable.get(record_href(ref)).status_code == 200


def test_a_question_asked_back_is_asked_again_of_the_pet_that_is_chosen(home, writable):
    back = writable.get(f"/answer/{_given(home, 'When did the scratching begin?')}").text
    assert "Which pet do you mean" in back
    assert "/ask?q=Max%3A%20When%20did%20the%20scratching%20begin%3F" in hrefs(back)
    chosen = writable.get(f"/answer/{_given(home, 'Max: When did the scratching begin?')}").text
    assert "Which pet do you mean" not in chosen
    assert not any(href.startswith("/ask?q=") for href in hrefs(chosen))


def _given(home, question: str) -> int:
    """The number of a question's answer, asked of the home and stored."""
    with Database(home.path) as database, database.transaction() as tx:
        body = json.dumps(answer_json(ask(question, tx, now_ms=NOW_MS)))
        return tx.save_answer(asked_ms=NOW_MS, question=question, body=body, cites=())


# --- records --------------------------------------------------------------------------------------


def test_every_link_of_every_page_opens(shown):
    """Citations, records behind records, devices, trends: followed until nothing new turns up."""
    todo, seen = [route for route in ROUTES if route not in {"/nowhere", "/record/log:never"}], set()
    while todo:
        route = todo.pop()
        bare = route.partition("#")[0]
        if bare in seen or bare.startswith(("/undo", "/ask?q=")):
            continue
        seen.add(bare)
        answer = shown.get(bare)
        assert answer.status_code == 200, route
        if answer.headers["content-type"].startswith("text/html"):
            inside = set(re.findall(r' id="([^"]+)"', answer.text))
            for address in hrefs(answer.text):
                if address.startswith("#"):
                    assert address[1:] in inside, f"{route} points at {address}"
                else:
                    todo.append(address)
    assert sum(unquote(urlsplit(route).path).startswith("/record/day:") for route in seen) > 150


def test_the_page_and_the_terminal_show_the_same_record(shown, filled):
    for ref in (FOOD_SET_REF, LABEL_REF, PASSAGE_REF, NOTE_REF, LOG_REF, ATE.ref):
        told = shown.get("/api/record", params={"ref": ref.text}).json()
        with Snapshot(filled) as reader:
            record = open_record(reader, ref)
        assert tuple(told["lines"]) == record.lines
        assert record_text(record)[0] == told["title"]


@pytest.mark.parametrize(
    "route",
    [
        "/record/log:never",
        "/record/not-a-reference",
        "/record/edge:a",
        "/nowhere",
        "/answer/999",
        f"/answer/{10**30}",
        "/device/none",
        "/series/none",
        "/static/none",
    ],
)
def test_what_does_not_exist_is_said_politely(shown, route):
    answer = shown.get(route)
    assert answer.status_code == 404
    assert "Back to the question box" in answer.text


# --- writing things down --------------------------------------------------------------------------


def test_a_log_entry_is_kept_and_opened(home, writable):
    entry = {"pet": "max", "what": "flea treatment", "at": "2026-07-14", "every": ""}
    answer = writable.post("/log", data=entry, headers={"Origin": str(writable.base_url).rstrip("/")})
    assert answer.status_code == 303
    page = writable.get(answer.headers["location"]).text
    assert "Kept." in page
    assert "flea treatment" in page
    assert home.heard == [("log", {"pet": "max", "what": "flea treatment", "at": "2026-07-14"})]


@pytest.mark.parametrize(
    ("form", "typed", "reason"),
    [
        ("/log", {"pet": "max", "what": " ", "at": "2026-07-14"}, "What must be filled in"),
        ("/log", {"pet": "max", "what": HOSTILE, "at": "2026-09-14"}, "must not lie in the future"),
        ("/food", {"pet": "rex", "name": "Stones", "label": HOSTILE, "at": "2026-07-14"}, "must be a pet of this home"),
        ("/wrong", {"ref": "edge:pet:max|ate|food:none|-", "reason": "no"}, "must be a stored link"),
        ("/note", {"pet": "max", "at": "2026-07-14", "text": "x" * 200_001}, "at most 200,000 characters"),
        ("/wrong", {"reason": "no"}, "must name the link"),
    ],
)
def test_a_refused_form_comes_back_with_what_was_typed_and_why(writable, form, typed, reason):
    answer = writable.post(form, data=typed)
    assert answer.status_code == 422
    assert reason in answer.text
    assert HOSTILE not in answer.text
    kept = typed.get("name")
    assert kept is None or f'value="{kept}"' in answer.text


def test_a_link_marked_wrong_says_so_everywhere_and_can_be_undone(writable):
    where = record_href(ATE.ref)
    writable.post("/wrong", data={"ref": ATE.ref.text, "reason": "It was the neighbour's bag"})
    marked = writable.get(where).text
    assert "marked wrong by you" in marked
    assert "It was the neighbour&#39;s bag" in marked
    assert 'class="cross"' in writable.get("/answer/1").text
    number = re.search(r'name="number" value="(\d+)"', marked)
    assert number
    writable.post("/undo", data={"number": number[1], "ref": ATE.ref.text})
    assert "marked wrong by you" not in writable.get(where).text
    assert 'class="cross"' not in writable.get("/answer/1").text


def test_a_cause_marked_wrong_is_listed_in_words_and_can_be_undone(home, writable):
    page = writable.get("/answer/1").text
    where = next(address for address in hrefs(page) if address.startswith("/wrong?hypothesis="))
    assert "Acme Chicken &amp; Rice as the reason for itching in Max" in writable.get(where).text
    name = unquote(where.partition("=")[2])
    writable.post("/wrong", data={"hypothesis": name, "reason": "he ate it for years"})
    with Snapshot(home.path) as reader:
        assert [(wall[1], wall[2]) for wall in reader.walls(at_ms=2**62)] == [
            (None, "food:acme_chicken>sign:itch@pet:max")
        ]
    listed = writable.get("/marks").text
    assert "Acme Chicken &amp; Rice as the reason for itching in Max" in listed
    assert "he ate it for years" in listed
    number = re.search(r'name="number" value="(\d+)"', listed)
    assert number
    for _ in range(2):  # a second click is no error
        assert writable.post("/undo", data={"number": number[1]}).headers["location"] == "/marks"
    assert "he ate it for years" not in writable.get("/marks").text


# --- the command door ----------------------------------------------------------------------------


def test_a_command_needs_this_starts_token(home, writable):
    body = {"command": "log", "args": {"pet": "max", "what": "bath", "at": "2026-07-14"}}
    assert writable.post("/api/command", json=body).status_code == 403
    assert writable.post("/api/command", json=body, headers={TOKEN_HEADER: "t" * 42 + "u"}).status_code == 403
    assert home.heard == []
    done = writable.post("/api/command", json=body, headers={TOKEN_HEADER: TOKEN})
    assert done.json()["done"] == 'Kept "bath" for Max.'
    assert writable.get(record_href(RecordRef(done.json()["opens"]))).status_code == 200


def test_a_refused_command_says_what_must_hold(writable):
    refused = writable.post(
        "/api/command", json={"command": "food", "args": {"pet": "rex"}}, headers={TOKEN_HEADER: TOKEN}
    )
    assert refused.status_code == 422
    assert "must be a pet of this home" in refused.json()["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"command": 1}', b'{"command": "log", "args": {"at": 1}}', b"[" * 5000]
)
def test_a_command_that_is_none_is_refused(writable, body):
    assert writable.post("/api/command", content=body, headers={TOKEN_HEADER: TOKEN}).status_code == 400


def test_a_token_that_others_can_read_is_refused_at_the_start(home, tmp_path):
    token_file = tmp_path / "open-token"
    token_file.write_text(TOKEN, encoding="ascii")
    token_file.chmod(0o644)
    with pytest.raises(ConfigError, match="0600"):
        create_app(home.services(token_file))


def test_without_a_token_file_there_is_no_command_door(shown):
    assert shown.post("/api/command", json={"command": "log"}, headers={TOKEN_HEADER: ""}).status_code == 403


def test_the_json_answer_is_the_stored_answer_with_its_number(home, writable):
    told = writable.post("/api/ask", json={"question": "Why?"}).json()
    with Snapshot(home.path) as reader:
        stored = reader.answer(told.pop("number"))
    assert stored is not None
    assert told == json.loads(stored[2])


def test_an_answers_words_say_which_language_they_are_in(home, writable):
    for language in ("de", "en"):
        body = answer_body() | {"language": language}
        with Database(home.path) as database, database.transaction() as tx:
            number = tx.save_answer(asked_ms=NOW_MS, question=body["question"], body=json.dumps(body), cites=())
        page = writable.get(f"/answer/{number}").text
        assert '<html lang="en">' in page
        assert page.count(f'<p lang="{language}"') == body["layout"].count("-") + 1
    before = {key: value for key, value in answer_body().items() if key != "language"}
    with Database(home.path) as database, database.transaction() as tx:
        number = tx.save_answer(asked_ms=NOW_MS, question=before["question"], body=json.dumps(before), cites=())
    assert '<p lang="en"' in writable.get(f"/answer/{number}").text, "answers of before were all in English"


# --- in a browser ---------------------------------------------------------------------------------


def test_the_first_load_is_small(shown, browser):
    loads = []
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page = context.new_page()
    page.on("response", lambda response: loads.append(response))  # noqa: PLW0108  # playwright wants a function
    page.goto(str(shown.base_url))
    page.wait_for_load_state("networkidle")
    sent = sum(len(gzip.compress(response.body())) for response in loads)
    assert {
        response.headers.get("content-encoding") for response in loads if "html" in response.headers["content-type"]
    } == {"gzip"}
    assert len(loads) <= 4
    assert sent <= 20 * 1024
    context.close()


@pytest.mark.parametrize(
    ("width", "scheme", "routes"), [(360, "light", ROUTES), (1100, "dark", ONE_A_TEMPLATE)], ids=["phone", "dark"]
)
def test_nobody_is_shut_out_and_a_phone_never_scrolls_sideways(shown, browser, width, scheme, routes):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    axe, found = Axe(), []
    for route in routes:
        page.goto(str(shown.base_url.join(route)))
        found += [(route, rule["id"], rule["nodes"][0]["html"][:120]) for rule in axe.run(page).response["violations"]]
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{route} is {wide} px wide"
    context.close()
    assert found == []


def test_everything_works_with_scripts_off(writable, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(str(writable.base_url))
    page.get_by_label("Ask about your pets").fill("Why is Max scratching more this week?")
    page.get_by_role("button", name="Ask").click()
    page.wait_for_url("**/answer/2")
    page.get_by_role("link", name="[product data]").click()
    assert page.locator("mark").text_content() == "chicken meal"
    page.go_back()
    page.locator("ul.links").get_by_role("link", name="That's wrong: Max ate Acme Chicken & Rice").click()
    page.get_by_label("Why, in your words").fill("wrong bag")
    page.get_by_role("button", name="Mark as wrong").click()
    page.get_by_role("button", name="Undo: this link is right after all").click()
    assert "marked wrong" not in (page.locator("main").text_content() or "")
    context.close()


def test_a_phone_gets_the_narrow_drawing_and_a_desk_the_wide_one(shown, browser):
    for width, size in ((360, "narrow"), (1100, "wide")):
        context = browser.new_context(viewport={"width": width, "height": 800})
        page = context.new_page()
        for route in ("/series/max.scratching", "/answer/1"):
            page.goto(str(shown.base_url.join(route)))
            drawn = page.locator("svg.trend:visible, svg.chart:visible")
            assert drawn.count() == 1
            assert size in str(drawn.get_attribute("class"))
        context.close()


def test_on_paper_the_answer_stands_and_the_forms_do_not(shown, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(str(shown.base_url.join("/answer/1")))
    page.emulate_media(media="print")
    assert page.get_by_text("Yes, clearly more").first.is_visible()
    assert page.locator("form:visible").count() == 0
    context.close()
