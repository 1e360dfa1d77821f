"""Cells in processes of their own, of which one fails."""

from dataclasses import replace

import pytest

from cocobandits.errors import CrashedError
from cocobandits.experiments import runner
from cocobandits.experiments.cells import Cell
from cocobandits.experiments.folder import RunFolder
from cocobandits.experiments.presets import QUICK, Experiment
from cocobandits.policies.mtts import MttsSettings


def test_a_cell_that_fails_keeps_no_other_from_running(tmp_path):
    """MTTS is told a design of other arms than there are."""
    told = replace(QUICK.settings, mtts=MttsSettings(design=(((1.0,),),)))
    experiment = Experiment.declare(replace(QUICK, settings=told), ["diet"], ["mtts", "ind-ts"], 2)
    folder = RunFolder(tmp_path / "run", experiment)
    folder.prepare(is_resumed=False, num_jobs=1)
    # The first to be tried would be the last to be missed.
    cells = sorted(runner.cells_of(experiment), key=lambda cell: cell.policy != "mtts")
    events = []
    with pytest.raises(CrashedError, match=r"diet / mtts / seed 0 .*\n.*diet / mtts / seed 1 "):
        events.extend(runner.run(folder, cells, num_jobs=1))
    assert [cell for cell in cells if not folder.has(cell)] == [
        Cell("diet", "mtts", 0),
        Cell("diet", "mtts", 1),
    ]
