"""The helper's own duties, without a jail around it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# Asks the helper to end when its program is not one yet; the look at the parent comes just before that.
ASKED_EARLY = """
import os, signal, sys, time
from browser_shell.browser import jail_helper
look = os.getppid
def asks_first():
    os.kill({whom}, signal.SIGTERM)
    time.sleep(0.3)
    return look()
jail_helper.os.getppid = asks_first
helper = os.getpid()
child = jail_helper.start_program([sys.executable, "-c", "import time; time.sleep(30)"], {{}})
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("whom", ["helper", "os.getpid()"])
def test_a_request_to_end_that_comes_while_the_program_starts_is_not_lost(whom: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ASKED_EARLY.format(whom=whom)],
        capture_output=True,
        text=True,
        timeout=20,
        start_new_session=True,
    )
    # The program is ended by the helper; or with it, where the request was quicker than the helper's handler.
    how_the_program_ended = ended.returncode or int(ended.stdout)
    assert how_the_program_ended == -signal.SIGTERM, ended.stderr
