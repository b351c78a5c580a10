"""The programs that read a page: the Nu HTML checker, and Chromium, which draws it, prints it, and
enforces what it says of itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import pytest
from statements import big, document, statement

from ckptcost.first.present.amounts import number
from ckptcost.first.report.html.page import page_of

ROOT = Path(__file__).resolve().parents[4]
KNOWN = "Inline script violates Content Security Policy"
"""the JSON is a data block, which is never executed; the checker warns all the same"""


@pytest.fixture
def checked(tmp_path):
    jar = ROOT / ".consumers" / "node" / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
    java = shutil.which("java")
    if java is None or not jar.exists():
        pytest.skip("java and vnu-jar are needed: make consumers")

    def check(*pages: str) -> tuple[int, list[dict]]:
        names = [tmp_path / f"{n}.html" for n in range(len(pages))]
        for name, page in zip(names, pages, strict=True):
            name.write_text(page, "utf-8")
        command = [
            java,
            "-Xss8m",
            "-XX:TieredStopAtLevel=1",
            "-jar",
            str(jar),
            "--format",
            "json",
            *map(str, names),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        return done.returncode, json.loads(done.stderr)["messages"]

    return check


@pytest.fixture
def browser(tmp_path):
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("chromium is not installed")

    def run(page: str, *what: str) -> tuple[str, list[str]]:
        name = tmp_path / "page.html"
        name.write_text(page, "utf-8")
        quiet = [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
        ]
        own = [
            f"--user-data-dir={tmp_path / 'profile'}",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
        ]
        command = [found, "--headless", *quiet, *own, *what, name.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return run


def test_the_checker_finds_no_fault(checked, extras_with, painted_with):
    one = statement(kind="measured").model_copy(update={"simulated": True})
    pages = [
        page_of(document(one), extras_with()),
        page_of(document(one, statement(run_id="b", name="the other", market=None)), extras_with()),
        page_of(document(statement(dated=False, rows=0))),
        page_of(big(3000)),
        page_of(painted_with("<b>&\"'\x00\u202e\ufffe</script>")),
    ]
    code, messages = checked(*pages)
    assert [m for m in messages if not m["message"].startswith(KNOWN)] == []
    assert code == 0


def test_the_checker_finds_faults(checked, extras_with):
    page = page_of(document(), extras_with())
    for broken in (
        page.replace("</table>", "", 1),
        page.replace('id="bill"', 'id="steps"'),
        page.replace("<h1>", "<h1><p>"),
        page.replace("<dt>", "<dt x=1>", 1),
    ):
        assert broken != page
        code, messages = checked(broken)
        assert code == 1
        assert any(m["type"] == "error" for m in messages)


def test_chromium_shows_the_figures_and_complains_of_nothing(browser, extras_with):
    whole = document(statement())
    page = page_of(whole, extras_with())
    shown, console = browser(page, "--dump-dom")
    assert console == []
    totals = whole.statements[0].totals
    plain = re.sub(r"<[^>]+>", "", shown.split("<main>")[1].split("</main>")[0])
    for q in (
        totals.energy,
        totals.gpu_time_lost,
        totals.cost,
        totals.emissions_location,
        totals.emissions_market,
        totals.embodied,
    ):
        assert f"{number(q.value)} {q.unit}" in plain
    again = json.loads(
        shown.split('type="application/json" id="statement">')[1].split("</script>")[0]
    )
    assert again == whole.plain()


def test_chromium_keeps_the_page_to_its_word(browser):
    page = page_of(document())
    planted = (
        '<script>document.title="taken over"</script><img src="https://example.org/x.png"'
        ' alt=""></main>'
    )
    shown, console = browser(page.replace("</main>", planted), "--dump-dom")
    assert "<title>taken over</title>" not in shown
    assert len([line for line in console if "Content Security Policy" in line]) == 2


_LOOK = """<script>
const seen = n => getComputedStyle(document.querySelectorAll(".panel")[n]).display;
const before = [0, 1, 2, 3].map(seen);
document.querySelectorAll(".switch > label")[2].click();
parent.document.title = JSON.stringify({
  before, after: [0, 1, 2, 3].map(seen), page: document.documentElement.scrollWidth, window: innerWidth,
  narrow: getComputedStyle(document.querySelector("svg.narrow")).display,
  boxes: [...document.querySelectorAll(".scroll")].some(e => e.scrollWidth > e.clientWidth)});
</script></body>"""


@pytest.mark.parametrize("width", [390, 1200])
def test_panels_switch_without_a_script_and_no_width_scrolls_the_page(browser, extras_with, width):
    """The script is the test's own, in a copy whose policy is taken away, in a frame because
    windows are no narrower than 500."""
    page = page_of(
        document(statement(kind="measured"), statement(run_id="b", name="n" * 200)),
        extras_with("w" * 90),
    )
    loose = page.replace('http-equiv="Content-Security-Policy"', 'name="x"').replace(
        "</body>", _LOOK
    )
    frame = (
        f'<!DOCTYPE html><title></title><iframe width="{width}" height="900" frameborder="0"'
        f' srcdoc="{escape(loose)}"></iframe>'
    )
    shown, _ = browser(frame, "--dump-dom")
    found = re.search(r"<title>([^<]*)</title>", shown)
    assert found is not None
    seen = json.loads(found[1])
    assert seen["before"] == ["block", "none", "none", "none"]
    assert seen["after"] == ["none", "none", "block", "none"]
    assert seen["window"] == width
    assert seen["page"] <= width
    assert seen["narrow"] == ("block" if width == 390 else "none")
    assert seen["boxes"] or width > 390


def test_it_prints(browser, extras_with, tmp_path):
    browser(
        page_of(document(), extras_with()),
        f"--print-to-pdf={tmp_path / 'page.pdf'}",
        "--no-pdf-header-footer",
    )
    printed = (tmp_path / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    sizes = {
        tuple(round(float(each)) for each in found.split())
        for found in re.findall(rb"/MediaBox \[([^\]]+)\]", printed)
    }
    assert sizes <= {(0, 0, 595, 842), (0, 0, 594, 842), (0, 0, 596, 842), (0, 0, 595, 843)}
    assert sizes
