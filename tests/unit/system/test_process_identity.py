import os
import subprocess
from collections.abc import Iterator

import pytest

from callboard.system.process_group import holders, session_members, signal_name
from callboard.system.process_identity import has_variable, identify


@pytest.fixture
def child() -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(
        ["sleep", "60"], start_new_session=True, stdout=subprocess.PIPE, env={"PATH": os.defpath, "MARK": "x y"}
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_process_keeps_its_identity_and_loses_it_with_its_life(child: "subprocess.Popen[bytes]"):
    identity = identify(child.pid)
    assert identity is not None
    assert identity == identify(child.pid)
    own = identify(os.getpid())
    assert own is not None
    assert own.started != identity.started
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie is nobody
    assert identify(child.pid) is None
    assert session_members(child.pid) == []
    child.wait()
    assert identify(child.pid) is None


def test_only_the_whole_variable_counts(child: "subprocess.Popen[bytes]"):
    assert has_variable(child.pid, "MARK", "x y")
    assert not has_variable(child.pid, "MARK", "x")
    assert not has_variable(child.pid, "ARK", "x y")
    assert not has_variable(2**22 + 1, "MARK", "x y")


def test_a_session_and_those_who_hold_a_pipe_are_found(child: "subprocess.Popen[bytes]"):
    assert child.stdout is not None
    assert session_members(child.pid) == [child.pid]
    assert holders({os.fstat(child.stdout.fileno()).st_ino}) == [child.pid]
    assert holders(set()) == []


def test_signals_have_names():
    assert signal_name(9) == "SIGKILL"
    assert signal_name(199) == "signal 199"
