"""The screens in headless Chromium: a stage, the break, a killed server and no vote lost; a review."""

from __future__ import annotations

import csv
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest

from host_tools.memo.ask.profiles import Generator
from host_tools.memo.making.painters import Painted
from host_tools.memo.making.prompts import make_prompts
from host_tools.memo.making.workshop import Workshop
from host_tools.memo.synthetic import draw_face

ROOT = Path(__file__).parents[4]
QUIET = os.environ | {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    "--window-size=1200,900",
]


@pytest.fixture
def browser(tmp_path: Path, chromium: tuple[str, str]) -> Iterator[Any]:
    """Chromium, driven by its own driver; nothing is downloaded."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium[0]
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(chromium[1]))
    driver.set_window_size(1200, 900)
    yield driver
    driver.quit()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start the platform on one port, again and again; it is gone when the test ends."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for k in range(4):
        cv2.imwrite(str(folder / f"SD1_HAP_{k}.png"), draw_face(k, 96, tint=k))
    practice = tmp_path / "practice"
    practice.mkdir()
    cv2.imwrite(str(practice / "x.png"), draw_face(0, 96))
    (practice / "practice.csv").write_text("image,category\nx.png,HAP\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["serve", folder, "-s", tmp_path / "study.sqlite", "--port", port]
    arguments += ["--per-stage", 3, "--break-min", 0.1, "--training-min", 0, "--practice", practice]
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "host_tools", "annotate", *map(str, arguments)]
        started.append(subprocess.Popen(command, cwd=ROOT, env=QUIET, stdout=subprocess.DEVNULL, text=True))
        _until(lambda: _listens(port), 60)
        started[-1].url = f"http://127.0.0.1:{port}"  # type: ignore[attr-defined]
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _until(true: Callable[[], Any], seconds: float = 30) -> Any:
    """Poll until `true` gives something; what goes stale while the page redraws is asked again."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if result := true():
                return result
        except WebDriverException:
            pass
        time.sleep(0.05)
    raise AssertionError("timed out")


class _Page:
    """What a rater does on the page."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)
        self.shown("#enter")

    def find(self, css: str) -> Any:
        return self.driver.find_element("css selector", css)

    def shown(self, css: str) -> Any:
        return _until(lambda: (e := self.find(css)).is_displayed() and e)

    def text(self) -> str:
        return str(self.find("#message").text)

    def says(self, part: str) -> None:
        _until(lambda: part in self.text())

    def sign_in(self) -> None:
        self.shown("#pseudonym textarea, #pseudonym input").send_keys("anna")
        self.shown("#secret input").send_keys("secret")
        self.shown("#enter").click()

    def goes_on(self, text: str) -> bool:
        if text not in self.text():
            self.find("#again").click()
        return text in self.text()

    def choose(self, name: str, value: str) -> None:
        _until(lambda: self._click(name, value))

    def _click(self, name: str, value: str) -> bool:
        inputs = self.driver.find_elements("css selector", f"#{name} input[type=radio]")
        wanted = next((i for i in inputs if i.get_attribute("value") == value), None)
        if wanted and not wanted.is_selected():
            self.driver.execute_script("arguments[0].click()", wanted)
        return bool(wanted and wanted.is_selected())

    def rate(self, then: str) -> None:
        self.shown("#submit")
        _until(lambda: not any(i.is_selected() for i in self.driver.find_elements("css selector", "input[type=radio]")))
        for name, value in (("category", "SAD"), ("degree", "4"), ("quality", "2")):
            self.choose(name, value)
        self.shown("#submit").click()
        self.says(then)


def _votes(tmp_path: Path) -> int:
    db = sqlite3.connect(tmp_path / "study.sqlite")
    try:
        return int(db.execute("select count(*) from votes").fetchone()[0])
    finally:
        db.close()


@pytest.mark.long
def test_a_rater_through_a_stage_a_crash_and_a_break(browser: Any, serve: Callable, tmp_path: Path) -> None:
    server = serve()
    page = _Page(browser)
    page.open(server.url)
    page.sign_in()
    page.shown("#trained").click()
    page.says("Practice 1 of 1")
    page.rate(then="You said sad; the picture was made to show happy")
    page.shown("#trained").click()
    page.says("Stage 1 of 2, picture 1 of 3")
    page.shown("#picture img")
    assert "SD1" not in page.find("#picture").get_attribute("innerHTML")  # the name would give the prompt away

    page.shown("#submit").click()
    page.says("Please answer all three")
    page.rate(then="Stage 1 of 2, picture 2 of 3")
    assert _votes(tmp_path) == 1

    server.kill()  # in the middle of a stage
    server.wait()
    assert _votes(tmp_path) == 1
    page.open(serve().url)
    page.sign_in()
    page.says("Stage 1 of 2, picture 2 of 3")
    page.rate(then="Stage 1 of 2, picture 3 of 3")
    page.rate(then="a break of 0.1 minutes between stages")
    assert _votes(tmp_path) == 3

    _until(lambda: page.goes_on("Stage 2 of 2, picture 1 of 1"))  # the first clicks come too early
    page.rate(then="All 4 pictures are rated")

    out = subprocess.run(
        [
            sys.executable,
            "-m",
            "host_tools",
            "annotate",
            "export",
            "-s",
            tmp_path / "study.sqlite",
            "-o",
            tmp_path / "v.csv",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert out.stdout.startswith("4 votes in")
    rows = list(csv.DictReader((tmp_path / "v.csv").read_text().splitlines()))
    assert {row["category"] for row in rows} == {"SAD"}
    assert {(row["degree"], row["quality"]) for row in rows} == {("4", "2")}
    assert all('"width":' in row["screen"] and '"ratio":' in row["screen"] for row in rows)
    assert len({row["image"] for row in rows}) == 4


@pytest.mark.long
def test_a_reviewer_keeps_one_picture_and_rejects_another(browser: Any, tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "set")
    prompts = make_prompts(2)[:2]
    workshop.paint("g", Generator(), prompts, _Drawer)
    first, second = workshop.to_review()
    workshop.close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "host_tools", "memo", "review", tmp_path / "set", "--port", port]
    server = subprocess.Popen(list(map(str, command)), cwd=ROOT, env=QUIET, stdout=subprocess.DEVNULL, text=True)
    try:
        _until(lambda: _listens(port), 60)
        browser.get(f"http://127.0.0.1:{port}")
        page = _Page(browser)
        page.says("2 to review")
        page.shown("#picture img")
        page.shown("#keep").click()
        page.says("1 to review")
        page.shown("#off-topic").click()
        page.says("Everything is reviewed")
    finally:
        server.kill()
        server.wait()
    rows = {r["image"]: r for r in csv.DictReader((tmp_path / "set" / "pictures.csv").read_text().splitlines())}
    assert rows[first]["status"] == "kept"
    assert (rows[second]["status"], rows[second]["reason"]) == ("rejected", "off-topic")


class _Drawer:
    """Draws another face for each prompt."""

    def paint(self, prompt: str, seed: int) -> Painted:
        return Painted(cv2.imencode(".png", draw_face(seed % 6, 64, tint=seed % 1000))[1].tobytes())
