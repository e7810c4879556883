"""The page and the pictures of a summary, without a browser."""

import copy
import dataclasses
import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from sample_summary import LEARNERS, sample

from kernelstream_reproduce.report import page, pictures, style, write_page, write_pictures
from kernelstream_reproduce.summary import Chart, Entry, Figure, Paper, Section, Summary, Table


@pytest.fixture(scope="module")
def summary():
    return sample()


@pytest.fixture(scope="module")
def text(summary):
    return page(summary)


class Elements(HTMLParser):
    """Checks that elements close as they opened, and keeps tags with attributes and all text outside scripts."""

    EMPTY = ("meta", "link", "br", "hr", "img", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)


def data_in(text):
    return json.loads(re.search(r'<script type="application/json" id="summary">(.*?)</script>', text)[1])


def one(entries, **more):
    """A summary of one table."""
    table = Table("T", "mistakes, %", entries, **more)
    return Summary([Paper("p", "P", "A", "V", [Section("s", "Table 1", "S", "how", "all", [table])])], [], {})


# ---- the page ----


def test_elements_close_and_ids_are_unique_and_links_lead_somewhere(text):
    found = Elements(text).found
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    inner = [a["href"][1:] for tag, a in found if tag == "a" and a["href"].startswith("#")]
    assert len(inner) > 20
    assert set(inner) <= set(ids)
    labels = [a["aria-labelledby"] for _, a in found if "aria-labelledby" in a]
    assert set(labels) <= set(ids)


def test_all_text_is_shown_as_it_is(summary, text):
    shown = " ".join("".join(Elements(text).words).split())
    wanted = [*summary.words, *summary.provenance.values()]
    for paper in summary.papers:
        wanted += [paper.title, paper.authors, paper.venue]
        for section in paper.sections:
            wanted += [section.title, section.place, section.protocol, section.complete]
            wanted += [part for claim in section.claims for part in (claim.text, claim.place, claim.evidence)]
            wanted += [part for chart in section.charts for part in (chart.title, chart.caption)]
            wanted += [entry.explanation for table in section.tables for entry in table.entries]
    for words in wanted:
        assert words in shown
    assert text.count("<script") == 2  # the data and page.js: none of the sample's
    assert not re.search(r"<b>not bold|alert\(\"no\"\)</script>", text)


def test_the_data_are_the_summary(summary, text):
    def same(value, found):
        if isinstance(value, dict):
            return value.keys() == found.keys() and all(same(value[key], found[key]) for key in value)
        if isinstance(value, list):
            return len(value) == len(found) and all(map(same, value, found))
        return found is None if isinstance(value, float) and math.isnan(value) else value == found

    assert same(dataclasses.asdict(summary), data_in(text))


def test_nothing_is_loaded(text):
    for _, attributes in Elements(text).found:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:,"))
    code = text.replace("http://www.w3.org/2000/svg", "")  # the name of SVG's elements
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|import\(", code)
    assert "default-src 'none'" in text


def test_the_same_summary_gives_the_same_page(summary, text):
    assert page(copy.deepcopy(summary)) == text == page(sample())


def test_numbers_are_those_of_the_entries_rounded():
    entry = Entry(
        "a9a",
        "SkeGD",
        {},
        ours=Figure(18.123456, 0.25, 20),
        without_warmup=Figure(17.9, 0.26, 20),
        paper=Figure(17.85, 0.3, 20),
        errors=3.1351,
        errors_without_warmup=0.56,
        verdict="reproduced without warm-up",
        explanation="Warm-up.",
        seconds=0.01234,
        settings={"eta": 1e-05},
    )
    text = page(one([entry]))
    for value, shown in [
        ("18.123456", "18.12"),
        ("0.25", "0.25"),
        ("17.9", "17.90"),
        ("17.85", "17.85"),
        ("3.1351", "+3.1"),
        ("0.56", "+0.6"),
        ("0.01234", "0.0123"),
    ]:
        assert f'<data value="{value}">{shown}</data>' in text
    assert "<dt>eta</dt><dd>1e−05</dd>" in text
    assert '<td class="worse-2"><span><data value="18.123456">' in text
    assert '<td class="near"><span><data value="17.9">' in text
    assert "all rounds" in text
    assert "without warm-up" in text


def test_every_figure_of_every_entry_is_on_the_page(summary, text):
    values = set(re.findall(r'<data value="([^"]+)">', text))
    for paper in summary.papers:
        for section in paper.sections:
            for table in section.tables:
                for entry in table.entries:
                    for figure in (entry.ours, entry.without_warmup, entry.paper):
                        assert figure is None or repr(figure.mean) in values
                    assert entry.errors is None or repr(entry.errors) in values


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (Figure(12.5, 0.0, 1), "12.50"),
        (Figure(12.5, math.nan, 20), "12.50"),
        (Figure(12.5, 0.0, 20), "12.50 ± 0.00"),
        (Figure(-0.01234, 0.001, 5), "−0.01234 ± 0.00100"),
        (Figure(123456.7, 12.0, 5), "123457 ± 12"),
    ],
)
def test_figures(figure, shown):
    text = "".join(Elements(page(one([Entry("d", "l", {}, ours=figure, verdict="no figure")]))).words)
    assert re.search(re.escape(shown) + r"(?! ±)(?!\d)", text)


def test_huge_and_infinite_differences_are_shown():
    entries = [
        Entry("d", "a", {}, Figure(1.0, 0.0, 2), None, Figure(2.0, 0.0, 2), -math.inf, None, "better", "E"),
        Entry("d", "b", {}, Figure(9.0, 0.1, 2), None, Figure(2.0, 0.1, 2), 1234.5, None, "worse", "E"),
        Entry("d", "c", {}, Figure(2.0, 0.1, 2), None, Figure(2.0, 0.1, 2), -0.001, None, "reproduced"),
    ]
    text = "".join(Elements(page(one(entries))).words)
    assert "−∞ s.e." in text
    assert "+1234 s.e." in text
    assert "0.0 s.e." in text
    assert "−0.0" not in text


def test_numbers_may_be_numpy_s_and_settings_of_any_kind():
    settings = {"eta": np.float64(0.5), "averaged": True, "kernel": "a<b", "bound": None, "grid": [1, 2]}
    entry = Entry(
        "d", "l", {}, Figure(np.float64(12.5), np.float64(0.5), 3), verdict="no figure", settings=settings
    )
    text = page(one([entry]))
    assert '<data value="12.5">12.50</data>' in text
    for shown in ("0.5", "True", "a&lt;b", "None", "[1, 2]"):
        assert f"<dd>{shown}</dd>" in text


def test_higher_can_be_better():
    entry = Entry("d", "a", {}, Figure(95.0, 1.0, 9), None, Figure(90.0, 1.0, 9), 5.0, None, "better", "E")
    assert '<td class="better-2">' in page(one([entry], lower_is_better=False))
    assert '<td class="worse-2">' in page(one([entry]))


def test_equal_explanations_stand_once(summary):
    text = page(one(summary.papers[0].sections[0].tables[0].entries))
    entries = summary.papers[0].sections[0].tables[0].entries
    for words in {entry.explanation for entry in entries if entry.explanation}:
        assert str(escape(words)) in text
        assert text.count(str(escape(words)) + "<details>") == 1
        number = re.search(rf'id="s-t0-n(\d+)">{re.escape(str(escape(words)))}', text)[1]
        links = text.count(f'href="#s-t0-n{number}"')
        assert links == sum(entry.explanation == words for entry in entries)


def test_the_tiles_count_the_verdicts(summary, text):
    entries = [e for p in summary.papers for s in p.sections for t in s.tables for e in t.entries]
    wanted = [sum(e.verdict.startswith("reproduced") for e in entries)]
    wanted += [sum(e.verdict == verdict for e in entries) for verdict in ("better", "worse", "not run")]
    tiles = re.findall(r'<li class="tile [\w-]+"><strong>(\d+)', text)
    assert [int(tile) for tile in tiles] == [*wanted, 1]


def test_a_table_may_not_have_two_entries_for_a_cell():
    with pytest.raises(ValueError, match="two entries for 'l'"):
        page(one([Entry("d", "l", {"B": 1}), Entry("d", "l", {"B": 1})]))


def test_an_empty_summary_is_a_page():
    Elements(page(Summary([], [], {})))
    empty = Chart("e", "line", "Nothing", "", "x", "y", [])
    Elements(page(Summary([Paper("p", "", "", "", [Section("s", "", "", "", "", charts=[empty])])], [], {})))


def test_it_is_written_wholly_or_not_at_all(summary, text, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")
    bad = one([Entry("d", "l", {}), Entry("d", "l", {})])
    with pytest.raises(ValueError, match="two entries"):
        write_page(bad, path)
    assert path.read_text() == "before"
    write_page(summary, path)
    assert path.read_text(encoding="utf-8") == text
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_page_s_files_are_small_and_lie_in_the_package():
    folder = Path(page.__globals__["__file__"]).parent
    lines = {
        name: (folder / name).read_text(encoding="utf-8").count("\n") for name in ("page.js", "page.css")
    }
    assert lines["page.js"] < 500
    assert lines["page.css"] < 300


# ---- style ----


def test_series_look_the_same_in_all_charts_of_a_paper_and_never_alike_in_one(summary):
    seen = {}
    for place, chart, styles in style.charts(summary):
        assert len(set(styles)) == len(styles)
        for series, look in zip(chart.series, styles, strict=True):
            assert seen.setdefault((place[0], series.name), look) == look
    assert [seen["0", name] for name in LEARNERS] == list(range(8))


def test_more_series_than_colours_still_differ():
    names = [f"learner {k}" for k in range(20)]
    usual = {}
    for shown in (names, ["new", *names[::2], "newer"], ["new", *names, "newer"]):
        assert len(set(style.styles(shown, usual))) == len(shown)


# ---- pictures ----


@pytest.fixture(scope="module")
def drawn(summary, tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("pictures")
    return {path.name: path.read_bytes() for path in write_pictures(summary, folder / "new")}


def test_every_chart_is_drawn_twice_and_all_cells_once(summary, drawn):
    ids = [chart.id for _, chart, _ in style.charts(summary)]
    assert set(drawn) == {f"{name}.{kind}" for name in [*ids, "overview"] for kind in ("png", "svg")}
    assert all(data.startswith(b"\x89PNG") for name, data in drawn.items() if name.endswith("png"))
    assert all(b"<svg" in data for name, data in drawn.items() if name.endswith("svg"))


def test_pictures_are_the_same_every_time(summary, drawn, tmp_path):
    few = copy.deepcopy(summary)
    del few.papers[0].sections[2:]
    del few.papers[2]
    for path in write_pictures(few, tmp_path):
        if path.stem != "overview":
            assert path.read_bytes() == drawn[path.name]
    assert not re.search(rb"<dc:date>", b"".join(drawn.values()))


def test_two_charts_of_one_name_are_refused(tmp_path):
    pytest.importorskip("matplotlib")
    twice = [Chart("a b", "line", "", "", "", "", []), Chart("a-b", "line", "", "", "", "", [])]
    bad = Summary([Paper("", "", "", "", [Section("", "", "", "", "", charts=twice)])], [], {})
    with pytest.raises(ValueError, match="two pictures would have the name 'a-b'"):
        write_pictures(bad, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_without_matplotlib_it_says_what_to_install(summary, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(pictures.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'kernelstream\[plot\]'"):
        write_pictures(summary, tmp_path)
