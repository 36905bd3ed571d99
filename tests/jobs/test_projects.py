"""Ordinary test projects run in the job image without a change."""

from __future__ import annotations

import io
import zipfile

import pytest

from browser_shell.core.containers import ContainerLimits
from support.job_box import Finished, JobBox

BROWSER_LIMITS = ContainerLimits(timeout_seconds=90)
PYTHON_PROJECT = {
    "test_page.py": (
        "import pytest\n"
        "def test_title(page):\n"
        "    page.set_content('<title>hello</title><canvas></canvas>')\n"
        "    assert page.title() == 'hello'\n"
        "def test_wrong(page):\n"
        "    page.set_content('<h1>text</h1>')\n"
        "    assert page.locator('h1').inner_text() == 'other'\n"
        "@pytest.mark.timeout(2)\n"
        "def test_slow(page):\n"
        "    page.wait_for_timeout(60_000)\n"
    ),
    # Fails when a package of the image causes a warning.
    "pytest.ini": "[pytest]\nfilterwarnings = error\n",
}
NODE_PROJECT = {
    "package.json": '{"type": "module"}',
    "playwright.config.ts": (
        "import { defineConfig } from '@playwright/test';\n"
        "export default defineConfig({ timeout: 5000,\n"
        "  use: { screenshot: 'on', video: 'on', trace: 'on', launchOptions: { chromiumSandbox: true } } });\n"
    ),
    "tests/page.spec.ts": (
        "import { test, expect } from '@playwright/test';\n"
        "test('title', async ({ page }) => {\n"
        "  await page.setContent('<title>hello</title>'); await expect(page).toHaveTitle('hello'); });\n"
        "test('wrong', async ({ page }) => {\n"
        "  await page.setContent('<title>hello</title>'); await expect(page).toHaveTitle('x', { timeout: 500 }); });\n"
        "test('slow', async ({ page }) => { await page.waitForTimeout(60000); });\n"
    ),
    "tests/old.spec.cjs": (
        "const { test, expect } = require('@playwright/test');\ntest('required', async () => { expect(1).toBe(1); });\n"
    ),
}


def assert_artifacts(finished: Finished) -> None:
    screenshots = list(finished.output.rglob("*.png"))
    assert screenshots
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in screenshots)
    videos = list(finished.output.rglob("*.webm"))
    assert videos
    assert all(path.read_bytes().startswith(b"\x1aE\xdf\xa3") and path.stat().st_size > 500 for path in videos)
    traces = list(finished.output.rglob("trace.zip"))
    assert traces
    for path in traces:
        assert any(name.endswith(".trace") for name in zipfile.ZipFile(io.BytesIO(path.read_bytes())).namelist())


@pytest.mark.promise("jobs:projects")
def test_a_python_project_with_playwright_runs_unchanged(box: JobBox) -> None:
    options = ["--output=/output/results", "--screenshot=on", "--video=on", "--tracing=on"]
    finished = box.run(
        *("python", "-m", "pytest", "-p", "no:cacheprovider", *options), files=PYTHON_PROJECT, limits=BROWSER_LIMITS
    )
    assert finished.report.exit_code == 1, finished.log
    assert b"2 failed, 1 passed" in finished.log
    assert_artifacts(finished)


@pytest.mark.promise("jobs:projects")
def test_a_node_project_with_playwright_runs_unchanged(box: JobBox) -> None:
    finished = box.run(
        *("playwright-node", "test", "--output=/output/results", "--reporter=list", "--workers=1"),
        files=NODE_PROJECT,
        limits=BROWSER_LIMITS,
    )
    assert finished.report.exit_code == 1, finished.log
    assert b"2 failed" in finished.log
    assert b"2 passed" in finished.log
    assert_artifacts(finished)
