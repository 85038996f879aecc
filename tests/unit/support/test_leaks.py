"""The checks for what a test leaves behind, tried on tests that leave it."""

from __future__ import annotations

import re

import pytest

CONFTEST = """
pytest_plugins = ["tests.support.leaks"]

def pytest_configure():
    import tests.support.leaks
    tests.support.leaks.GRACE = 0.5
"""

GUILTY = """
import asyncio, logging, subprocess, sys, threading, time
import pytest

async def test_task():
    asyncio.create_task(asyncio.sleep(60), name="left-task")

async def test_failed_task_nobody_asked():
    async def fail():
        raise ValueError("nobody asked")
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task

def test_thread():
    threading.Thread(target=time.sleep, args=(4,), daemon=True, name="left-thread").start()

def test_child():
    test_child.kept = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

def test_unwaited_child():
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    child.stdout.read()
    child.stdout.close()
    test_unwaited_child.kept = child

def test_log():
    logging.getLogger("callboard.somewhere").warning("left-log %d", 7)

def test_root_handler():
    logging.getLogger().addHandler(logging.NullHandler())
"""

INNOCENT = """
import asyncio, logging, subprocess, sys, threading, time
import pytest

async def test_cancelled_task():
    asyncio.create_task(asyncio.sleep(60)).cancel()

async def test_executor():
    await asyncio.to_thread(time.sleep, 0)

async def test_child():
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    assert await child.wait() == 0

def test_thread_that_is_ending():
    threading.Thread(target=time.sleep, args=(0.2,)).start()

def test_caplog(caplog):
    logging.getLogger("callboard").error("expected")
    assert "expected" in caplog.text

@pytest.mark.allow_logs
def test_allowed_log():
    logging.getLogger("callboard").error("allowed")

def test_info_log():
    logging.getLogger("callboard").info("no harm")

@pytest.mark.allow_loop_errors
@pytest.mark.allow_logs
async def test_allowed_loop_error():
    asyncio.get_running_loop().call_exception_handler({"message": "allowed"})

@pytest.mark.allow_leaks
async def test_allowed_task():
    asyncio.create_task(asyncio.sleep(60))

@pytest.fixture(scope="module")
def server():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.communicate(b"\\n")

def test_wider_scope(server):
    assert server.poll() is None

def test_wider_scope_again(server):
    assert server.poll() is None
"""

QT_GUILTY = """
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

def test_timer(qapp):
    test_timer.kept = QTimer()
    test_timer.kept.start(10_000)

def test_window(qapp):
    test_window.kept = QWidget()
    test_window.kept.setWindowTitle("left-window")
"""

QT_INNOCENT = """
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

def test_stopped_timer(qapp):
    timer = QTimer()
    timer.start(10_000)
    timer.stop()

def test_closed_window(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    window.show()

def test_forgotten_window(qapp):
    window = QWidget()
    window.itself = window
    window.show()
"""

INI = """
[pytest]
pythonpath = {root}
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
qt_api = pyside6
filterwarnings = error
markers =
    allow_logs: x
    allow_loop_errors: x
    allow_leaks: x
"""


@pytest.fixture
def run(pytester: pytest.Pytester, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch):
    """Runs the given test module in a pytest of its own and returns the result."""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    pytester.makeini(INI.format(root=pytestconfig.rootpath))
    pytester.makeconftest(CONFTEST)

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q", *arguments)

    return run


def accusations(result: pytest.RunResult) -> dict[str, str]:
    """From the report of a run: what each accused test is accused of."""
    sections = re.split(r"_+ ERROR at teardown of (\w+) _+\n", result.stdout.str().partition("=== short test")[0])
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def test_each_leak_is_named(run) -> None:
    result = run(GUILTY)

    result.assert_outcomes(passed=7, errors=7)
    found = accusations(result)
    assert "task: <Task pending name='left-task'" in found["test_task"]
    assert "event loop error" in found["test_failed_task_nobody_asked"]
    assert "ValueError('nobody asked')" in found["test_failed_task_nobody_asked"]
    assert "thread: <Thread(left-thread" in found["test_thread"]
    assert "time.sleep(60) (sleeping)" in found["test_child"]
    assert "(ended, but never waited for)" in found["test_unwaited_child"]
    assert "log record: WARNING callboard.somewhere: left-log 7" in found["test_log"]
    assert "log handler on the root logger: <NullHandler" in found["test_root_handler"]


def test_what_is_tidy_or_allowed_passes(run) -> None:
    run(INNOCENT).assert_outcomes(passed=11)


def test_qt_leaks_are_named(run) -> None:
    result = run(QT_GUILTY)

    result.assert_outcomes(passed=2, errors=2)
    found = accusations(result)
    assert "running timer: <PySide6.QtCore.QTimer" in found["test_timer"]
    assert "'left-window'" in found["test_window"]


def test_tidy_qt_tests_pass(run) -> None:
    run(QT_INNOCENT).assert_outcomes(passed=3)


def test_a_failed_test_is_accused_once(run) -> None:
    result = run("import logging\ndef test_it():\n    logging.getLogger('callboard').error('x')\n    assert False\n")

    result.assert_outcomes(failed=1)
    assert accusations(result) == {}
