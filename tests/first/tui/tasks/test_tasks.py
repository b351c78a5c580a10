"""What people come for takes few keys, in the smallest terminal as well."""

from __future__ import annotations

import pty
import shutil
from os import close

import pytest
from screen_tasks import MOST_KEYS, TASKS, Task, record_a_run, seconds


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    try:
        for end in pty.openpty():
            close(end)
    except OSError as error:
        pytest.skip(f"no pseudo-terminal is to be had here: {error}")
    folder = tmp_path_factory.mktemp("runs")
    record_a_run(folder)
    return folder


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_takes_few_keys(task: Task):
    assert 0 < task.keys <= MOST_KEYS


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_comes_to_its_answer(task: Task, runs):
    seconds(task, "80x24", runs)
