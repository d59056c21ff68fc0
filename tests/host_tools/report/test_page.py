from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest

from host_tools.report.page import Page, cell

matplotlib.use("Agg")


def test_page_is_one_file_without_links(tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    page = Page("A <report>", subtitle="of one run")
    section = page.section("Scores")
    section.table(["system", "F1"], [["ours", 0.123456], ["theirs", None]], best={1: 0})
    figure, axes = plt.subplots()
    axes.plot([0, 1])
    section.figure(figure, "a line")
    section.picture(np.zeros((10, 2000, 3), np.uint8), "black")
    page.write(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "A &lt;report&gt;" in text
    assert '<td class="number best">0.1235</td>' in text
    assert 'src="http' not in text and 'href="http' not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(float("nan"), "–", id="nan"),
        pytest.param(None, "–", id="none"),
        pytest.param(True, "yes", id="bool"),
        pytest.param(3, "3", id="int"),
        pytest.param(0.00012345, "0.0001234", id="float"),
    ],
)
def test_cell(value: object, shown: str) -> None:
    assert cell(value) == shown
