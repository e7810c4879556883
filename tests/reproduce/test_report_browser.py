"""The report's page in a real browser. Skipped, by name, where there is no Chromium or no playwright."""

import csv
import gzip
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from sample_summary import LEARNERS, sample

from kernelstream_reproduce.comparison import summarise
from kernelstream_reproduce.protocols import all_experiments
from kernelstream_reproduce.report import write_page
from kernelstream_reproduce.store import Store

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need Chromium: no such program")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LINE = "#chart-skegd-figure2-german\\.numer"
SCATTER = "#chart-skegd-table3-time"
BARS = "#chart-nolana-kernel-error"
REGRET = "#chart-kons-regret"


@pytest.fixture(scope="module")
def summary():
    return sample()


@pytest.fixture(scope="module")
def address(summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_page(summary, path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page in a window; at the end no message may have come and nothing but the file have been asked for."""
    contexts, messages, asked = [], [], []

    def opened(width=1280, height=900, **options):
        size = {"width": width, "height": height}
        context = browser.new_context(
            viewport=size, reduced_motion="reduce", **options
        )  # no smooth scrolling
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert messages == []
    assert {url.partition("#")[0] for url in asked if not url.startswith(("data:", "blob:"))} == {address}


@pytest.fixture
def page(open_page):
    return open_page()


def chart_of(summary, name):
    return next(chart for p in summary.papers for s in p.sections for chart in s.charts if chart.id == name)


def tooltip(page, figure):
    """What the tooltip shows: its head, and names with values."""
    rows = page.locator(f"{figure} .tip li")
    found = [(row.locator("span").inner_text(), row.locator("b")) for row in rows.all()]
    return page.locator(f"{figure} .tip strong").inner_text(), {
        name: (value.get_attribute("data-value"), value.inner_text()) for name, value in found
    }


def number(shown):
    return float(shown.partition(" ±")[0].replace("−", "-"))


# ---- the page ----


def test_the_page_never_scrolls_sideways(page):
    for opened in ("false", "true"):
        page.evaluate(f"for (const it of document.querySelectorAll('main details')) it.open = {opened}")
        for width in (320, 390, 768, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_chart_is_drawn(page, summary):
    for section in (section for paper in summary.papers for section in paper.sections):
        for chart in section.charts:
            figure = "#chart-" + chart.id.replace(".", "\\.")
            assert page.locator(f"{figure} .plot > svg g[data-series]").count() == len(chart.series)
            assert page.locator(f"{figure} .legend button:visible").count() == len(chart.series)


def test_numbers_of_the_tables_are_those_of_the_summary(page, summary):
    tables = page.evaluate("""() => [...document.querySelectorAll('table.results')].map((it) => [...it.tBodies].map((body) => ({
        label: body.querySelector('.learner th').innerText,
        rows: [...body.rows].slice(1).map((row) => ({
            kind: row.className,
            cells: [...row.cells].slice(1).map((cell) => ({
                text: cell.innerText, values: [...cell.querySelectorAll('data')].map((it) => [Number(it.value), it.innerText])
            })),
        })),
    })))""")
    wanted = [table for p in summary.papers for s in p.sections for table in s.tables]
    assert len(tables) == len(wanted) == 3
    checked = 0
    for table, shown in zip(wanted, tables, strict=True):
        labels = list(dict.fromkeys(entry.label for entry in table.entries))
        assert [body["label"] for body in shown] == labels
        for body in shown:
            entries = [entry for entry in table.entries if entry.label == body["label"]]
            rows = {row["kind"]: row["cells"] for row in body["rows"]}
            assert ("without_warmup" in rows) == any(entry.without_warmup for entry in entries)
            for kind, off in (
                ("paper", None),
                ("ours", "errors"),
                ("without_warmup", "errors_without_warmup"),
            ):
                for entry, cell in (
                    zip(entries, rows.get(kind, []), strict=kind in rows) if kind in rows else ()
                ):
                    figure = getattr(entry, kind)
                    if figure is None:
                        assert cell["text"] == "–"
                        continue
                    values = [figure.mean] + [figure.std] * (figure.n > 1)
                    values += [getattr(entry, off)] if off and getattr(entry, off) is not None else []
                    assert [value for value, _ in cell["values"]] == values
                    for value, text in cell["values"]:
                        decimals = len(text.partition(".")[2])
                        assert abs(number(text) - value) <= 0.5001 * 10**-decimals
                        checked += 1
            for entry, cell in zip(entries, rows["verdict"], strict=True):
                assert entry.verdict.replace("reproduced without", "without") in cell["text"].replace(
                    "\xa0", " "
                )
    assert checked > 300


def test_details_and_explanations_open_by_keyboard(page):
    cell = page.locator("tr.verdict td:has(details):has(a)").first
    assert not cell.locator("dl").is_visible()
    cell.locator("summary").focus()
    page.keyboard.press("Enter")
    assert cell.locator("dl").is_visible()
    assert "eta" in cell.inner_text()
    cell.locator("a").focus()
    page.keyboard.press("Enter")
    assert page.locator(":target").inner_text() != ""


def test_without_javascript_everything_can_be_read(open_page, summary):
    page = open_page(java_script_enabled=False)
    assert page.locator("table.results").first.is_visible()
    assert page.locator("nav a").first.is_visible()
    assert page.locator("text=The drawing needs JavaScript").count() == 5
    page.locator(f"{LINE} summary").click()
    rows = page.locator(f"{LINE} tbody tr")
    chart = chart_of(summary, "skegd-figure2-german.numer")
    assert rows.count() == len(chart.series[0].x)
    first = rows.first.locator("td").first.inner_text()
    assert number(first) == pytest.approx(chart.series[0].y[0], rel=1e-5)
    assert not page.locator("#theme").is_visible()


def test_dark_mode(open_page):
    page = open_page()
    ground = "getComputedStyle(document.body).backgroundColor"
    curve = "getComputedStyle(document.querySelector('.plot .curve')).stroke"
    light = page.evaluate(ground), page.evaluate(curve)
    theme = page.get_by_role("button", name="Dark mode")
    assert theme.get_attribute("aria-pressed") == "false"
    theme.click()
    assert theme.get_attribute("aria-pressed") == "true"
    dark = page.evaluate(ground), page.evaluate(curve)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    page.reload()
    assert page.evaluate(ground) == dark[0]  # remembered
    page.get_by_role("button", name="Dark mode").click()
    assert page.evaluate(ground) == light[0]
    assert open_page(color_scheme="dark").evaluate(ground) == dark[0]  # the system's choice


def test_no_storage_is_no_error(browser, address):
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    page.get_by_role("button", name="Dark mode").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert errors == []
    context.close()


def test_the_contents_are_folded_on_a_phone_and_lead_to_sections(open_page):
    page = open_page(390, 844)
    assert not page.locator("nav a").first.is_visible()
    page.locator("nav summary").click()
    page.locator("nav a[href='#skegd-figure2']").click()
    assert not page.locator("nav a").first.is_visible()
    page.wait_for_function(
        "() => Math.abs(document.getElementById('skegd-figure2').getBoundingClientRect().top) < 120"
    )


def test_the_first_column_and_the_heads_stay_in_view(open_page):
    page = open_page(390, 844)
    box = page.locator(".table > .scroll").first
    box.evaluate("it => it.scrollTo(300, 400)")
    left = box.bounding_box()
    head = box.locator("tbody tr.paper th").nth(4).bounding_box()
    assert abs(head["x"] - left["x"]) < 3
    assert abs(box.locator("thead").bounding_box()["y"] - left["y"]) < 3
    assert left["height"] < 844
    page.get_by_role("button", name="whole table").first.click()
    assert box.evaluate("it => it.scrollHeight - it.clientHeight") == 0


# ---- charts ----


def test_buttons_hide_and_isolate_series(page):
    drawn = page.locator(f"{LINE} g[data-series]")
    buttons = page.locator(f"{LINE} .legend button[aria-pressed]")
    everything = page.locator(f"{LINE} .tools button", has_text="show all")
    assert everything.is_disabled()
    buttons.nth(1).click()
    assert buttons.nth(1).get_attribute("aria-pressed") == "false"
    assert [it.get_attribute("data-series") for it in drawn.all()] == ["0", "2", "3", "4", "5", "6", "7"]
    everything.click()
    assert drawn.count() == 8
    buttons.nth(2).dblclick()
    assert [it.get_attribute("data-series") for it in drawn.all()] == ["2"]
    buttons.nth(2).dblclick()
    assert drawn.count() == 8
    buttons.nth(3).click(modifiers=["Alt"])
    assert [it.get_attribute("data-series") for it in drawn.all()] == ["3"]
    buttons.nth(3).focus()
    page.keyboard.press("Space")
    assert drawn.count() == 0
    assert everything.is_enabled()


def test_the_axes_switch_to_logarithms(page):
    def places():
        return [float(it.get_attribute("x")) for it in page.locator(f"{LINE} .tick-x").all()]

    def gaps(values):
        return [b - a for a, b in pairwise(values)]

    button = page.locator(f"{LINE} .axis-button", has_text="log x")
    linear = places()
    assert max(gaps(linear[:-1])) == pytest.approx(min(gaps(linear[:-1])))
    before = page.locator(f"{LINE} .curve").first.get_attribute("d")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert places() != linear
    assert page.locator(f"{LINE} .plot > svg .curve").first.get_attribute("d") != before
    labels = [number(text) for text in page.locator(f"{LINE} .tick-x").all_text_contents()]
    assert labels == [20, 50, 100, 200, 500, 1000]
    button.click()
    assert places() == linear


def test_an_axis_with_values_below_zero_has_no_logarithm(page):
    switch = {it.inner_text(): it.is_disabled() for it in page.locator(f"{REGRET} .axis-button").all()}
    assert switch == {"log x": False, "log y": True}
    assert page.locator(f"{BARS} .axis-button").all_inner_texts() == ["log y"]


def test_hovering_a_line_shows_the_values_there(page, summary):
    chart = chart_of(summary, "skegd-figure2-german.numer")
    plot = page.locator(f"{LINE} .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.locator(f"{LINE} .legend button").first.click()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 100)
    head, rows = tooltip(page, LINE)
    x = float(re.fullmatch(r"rounds: (\d+)", head)[1])
    at = chart.series[0].x.index(x)
    assert 0 < at < 59
    assert set(rows) == set(LEARNERS[1:])
    for series in chart.series[1:]:
        exact, shown = rows[series.name]
        assert float(exact) == series.y[at]
        mean, spread = shown.split(" ± ")
        assert float(mean) == pytest.approx(series.y[at], rel=1e-3)
        assert float(spread) == pytest.approx(series.spread[at], rel=0.05)
    page.mouse.move(2, 2)
    assert not page.locator(f"{LINE} .tip").is_visible()


def test_arrow_keys_move_the_cursor(page, summary):
    chart = chart_of(summary, "skegd-figure2-german.numer")
    page.locator(f"{LINE} .plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert tooltip(page, LINE)[0] == "rounds: 40"
    assert float(tooltip(page, LINE)[1]["RBP"][0]) == chart.series[0].y[1]
    page.keyboard.press("ArrowLeft")
    assert tooltip(page, LINE)[0] == "rounds: 20"
    page.keyboard.press("End")
    assert tooltip(page, LINE)[0] == "rounds: 1200"
    page.keyboard.press("Escape")
    assert not page.locator(f"{LINE} .tip").is_visible()


def test_points_of_a_scatter_have_names(page, summary):
    chart = chart_of(summary, "skegd-table3-time")
    points = sorted(
        (x, y, series.name, name)
        for series in chart.series
        for x, y, name in zip(series.x, series.y, series.names, strict=True)
    )
    page.locator(f"{SCATTER} .plot").focus()
    for x, y, learner, name in points[:3]:
        page.keyboard.press("ArrowRight")
        head, rows = tooltip(page, SCATTER)
        assert head == name
        assert learner in rows
        assert (float(rows[chart.x_label][0]), float(rows[chart.y_label][0])) == (x, y)
    page.keyboard.press("End")  # nothing else is near the last one
    head, _ = tooltip(page, SCATTER)
    assert head == points[-1][3]
    box = page.locator(f"{SCATTER} .ring").bounding_box()
    page.keyboard.press("Escape")
    page.mouse.move(box["x"] + box["width"] / 2 + 2, box["y"] + box["height"] / 2 - 2)
    assert tooltip(page, SCATTER)[0] == head


def test_bars_show_a_category(page, summary):
    chart = chart_of(summary, "nolana-kernel-error")
    page.locator(f"{BARS} .plot").focus()
    page.keyboard.press("End")
    head, rows = tooltip(page, BARS)
    assert head == chart.categories[-1]
    assert {name: float(exact) for name, (exact, _) in rows.items()} == {
        s.name: s.y[-1] for s in chart.series
    }
    assert page.locator(f"{BARS} .whisker").count() == 12


def test_missing_points_and_unequal_rounds(page):
    page.locator(f"{REGRET} .plot").focus()
    page.keyboard.press("End")
    head, rows = tooltip(page, REGRET)
    assert head == "rounds: 1000"
    assert float(rows["KONS"][0]) == 6.9
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert set(tooltip(page, REGRET)[1]) == {"bound"}  # KONS has no value at 10


def test_charts_fit_the_window(open_page):
    page = open_page()
    before = page.locator(f"{LINE} .plot > svg").get_attribute("viewBox")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(
        "(before) => document.querySelector('.plot > svg').getAttribute('viewBox') !== before", arg=before
    )
    assert float(page.locator(f"{LINE} .plot > svg").get_attribute("viewBox").split()[2]) <= 390


def test_drawings_and_numbers_can_be_saved(page, summary, tmp_path):
    chart = chart_of(summary, "skegd-figure2-german.numer")
    with page.expect_download() as got:
        page.locator(f"{LINE} button", has_text="save SVG").click()
    got.value.save_as(tmp_path / "a.svg")
    assert got.value.suggested_filename == "skegd-figure2-german.numer.svg"
    drawing = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "var(" not in drawing
    assert drawing.count("rgb(0, 114, 178)") > 3
    assert all(name in drawing for name in LEARNERS)
    with page.expect_download() as got:
        page.locator(f"{LINE} button", has_text="save CSV").click()
    got.value.save_as(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 480
    values = [float(row["mistakes so far, %"]) for row in rows if row["series"] == "SkeGD"]
    assert values == chart.series[5].y
    with page.expect_download() as got:
        page.locator(".table button", has_text="save CSV").first.click()
    got.value.save_as(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    entries = summary.papers[0].sections[0].tables[0].entries
    assert [row["learner"] for row in rows] == [entry.label for entry in entries]
    assert [row["explanation"] for row in rows] == [entry.explanation for entry in entries]
    means = [float(row["ours_mean"]) if row["ours_mean"] else None for row in rows]
    assert means == [entry.ours and entry.ours.mean for entry in entries]
    assert [json.loads(row["settings"]) for row in rows] == [entry.settings for entry in entries]


# ---- access ----


def test_controls_have_names_headings_are_in_order_and_pictures_are_labelled(page):
    problems = page.evaluate("""() => {
        const name = (it) => (it.getAttribute('aria-label') || it.innerText || '').trim();
        const found = [];
        for (const it of document.querySelectorAll('button, a, summary, [tabindex]')) {
            if (it.hidden) continue;
            const by = document.getElementById(it.getAttribute('aria-labelledby'));
            if (!name(it) && !by?.innerText.trim() && it.checkVisibility()) found.push(it.outerHTML);
        }
        let level = 0;
        for (const it of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
            const now = Number(it.tagName[1]);
            if (now > level + 1) found.push(it.outerHTML);
            level = now;
        }
        if (document.querySelectorAll('h1').length !== 1) found.push('h1');
        for (const it of document.querySelectorAll('.plot > svg')) {
            if (!it.querySelector('title').textContent || !it.querySelector('desc').textContent) found.push(it.id);
        }
        for (const it of document.querySelectorAll('[role=img]:not(svg)')) if (!it.ariaLabel) found.push(it.outerHTML);
        for (const it of document.querySelectorAll('table')) if (!it.caption?.textContent) found.push('caption');
        for (const it of document.querySelectorAll('th')) if (!it.scope) found.push(it.outerHTML);
        return found;
    }""")
    assert problems == []
    assert page.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page, theme):
    """Every text element on the page, each on the nearest ground that is not transparent: at least 4.5 to 1."""
    page = open_page(color_scheme=theme)
    page.evaluate("for (const it of document.querySelectorAll('main details')) it.open = true")
    page.locator(f"{LINE} .legend button").first.click()
    page.locator(f"{LINE} .plot").focus()
    page.keyboard.press("End")
    weak = page.evaluate("""() => {
        const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
        const light = (colour) => {
            const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            const [r, g, b] = colour.slice(0, 3).map((v) => linear(v / 255));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = (it) => { for (; it; it = it.parentElement) { const c = parse(getComputedStyle(it).backgroundColor);
            if (c.length === 3 || c[3] > 0) return c; } return null; };
        const found = new Set();
        let looked = 0;
        for (const it of document.querySelectorAll('body *')) {
            if (![...it.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
            if (!it.checkVisibility() || it.closest('script, desc, title') || it.matches(':disabled')) continue;
            const style = getComputedStyle(it);
            const [a, b] = [light(parse(it.closest('svg') ? style.fill : style.color)), light(ground(it))];
            const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            looked++;
            if (contrast < 4.5) found.add(`${it.tagName} in ${it.parentElement.outerHTML.slice(0, 80)}: ${contrast}`);
        }
        return [looked, [...found]];
    }""")
    assert weak[0] > 1000
    assert weak[1] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_series_stand_out_from_the_ground(open_page, theme):
    """Lines and markers need 3 to 1."""
    page = open_page(color_scheme=theme)
    curves = page.locator(
        f"{LINE} .plot > svg .curve"
    )  # asked at once: a chart that is drawn anew has other elements
    colours = curves.evaluate_all("all => all.map(it => getComputedStyle(it).stroke)")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")

    def light(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
        r, g, b = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    assert len(set(colours)) == 8
    for colour in colours:
        low, high = sorted((light(colour), light(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3, colour


RESULTS = Path(__file__).parents[2] / "docs" / "results" / "reproduction"


@pytest.mark.skipif(not RESULTS.exists(), reason="the repository's results are not here")
def test_the_page_of_the_repositorys_results(browser, tmp_path):
    """Figures on the page are the means of the stored runs, computed here once more without our code."""
    for name in ("results.jsonl", "times.jsonl"):
        (tmp_path / name).write_bytes(gzip.decompress((RESULTS / f"{name}.gz").read_bytes()))
    wanted = all_experiments()
    write_page(summarise({"skegd-table3": wanted["skegd-table3"]}, Store(tmp_path)), tmp_path / "report.html")
    page = browser.new_page()
    told = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: told.append(request.url) if request.url.startswith("http") else None)
    page.goto((tmp_path / "report.html").as_uri())
    shown = page.evaluate("""() => {
        const table = document.querySelector('table.results');
        const data = [...table.tHead.rows[0].querySelectorAll('th')].map((it) => it.innerText);
        const values = (cell) => [...cell.querySelectorAll('data')].map((it) => it.value);
        return [...table.tBodies].map((body) => [
            body.rows[0].innerText.trim(), data, [...body.querySelectorAll('tr.ours td')].map(values)]);
    }""")
    runs = pd.read_json(tmp_path / "results.jsonl", lines=True, dtype={"id": str})
    runs = runs[(runs["play"] == "skegd.stream") & (runs["phase"] == "run") & runs["rows"].isna()]
    checked = 0
    for learner, columns, cells in shown:
        if learner not in (
            "RBP",
            "Forgetron",
        ):  # which are not tuned, so that all their runs are those of the table
            continue
        for data, values in zip(columns, cells, strict=True):
            own = runs[(runs["learner"] == learner) & (runs["data"] == data)]
            own = own[[settings["bandwidth"] == "aligned" for settings in own["settings"]]]
            mistakes = pd.Series([measures["mistakes"] for measures in own["measures"]])
            assert len(mistakes) == 20
            assert float(values[0]) == pytest.approx(mistakes.mean())
            assert float(values[1]) == pytest.approx(mistakes.std())
            checked += 1
    assert checked == 16
    assert told == []
    page.close()
