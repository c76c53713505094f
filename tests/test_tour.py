"""The notebook tour runs in a kernel of its own, and its answers are those that it shows.

``pytest tests/test_tour.py --update-golden`` writes the answers anew.
"""

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

TOUR = Path(__file__).parents[1] / "docs" / "tour.ipynb"


def run(folder: Path) -> Any:
    """The notebook after all cells were executed in a folder."""
    notebook = nbformat.read(TOUR, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell["metadata"] = {}  # moments of execution
        if cell.cell_type == "code":
            cell["outputs"] = [each for each in cell.outputs if shown(each)]
    return notebook


def shown(output: Any) -> bool:
    """Charts are drawn by the reader: they would be 50 kB of a page's script."""
    return output.get("name") != "stderr" and "alt." not in output.get("data", {}).get("text/plain", "")


def texts(notebook: Any) -> list[str]:
    return [
        each.get("text") or each["data"]["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for each in cell.outputs
        if shown(each)
    ]


@pytest.mark.slow
def test_the_tour_runs_and_shows_its_answers(
    demo_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "demo").symlink_to(demo_folder)
    executed = run(tmp_path)
    if request.config.getoption("--update-golden"):
        nbformat.write(executed, TOUR)
    else:
        assert texts(executed) == texts(nbformat.read(TOUR, as_version=4))
    assert len(texts(executed)) >= 10
