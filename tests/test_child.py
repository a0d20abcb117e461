"""Child processes: what they answer, how their end is told, and that nothing outlives them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection, Pipe, wait

import psutil
import pytest

from conformance.harness.isolation.child import Child, ChildEnded, fork, spawn
from conformance.harness.isolation.ending import describe_returncode, stacks_of
from conformance.harness.isolation.watchdog import Limits, NoAnswer, await_answer

GENEROUS = Limits(60.0)


def echo(workplace):
    """Answers every request with itself; a callable is called."""
    while (request := workplace.connection.recv()) is not None:
        workplace.page.write(f"at {request}")
        workplace.connection.send(ACTIONS[request](workplace) if request in ACTIONS else request)


def sleep_forever(workplace=None):
    time.sleep(1000)


def sleep_holding_the_gil(workplace):
    ctypes.PyDLL(None).sleep(1000)


def sleep_and_ignore_signals(workplace):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGABRT, signal.SIGTERM})
    time.sleep(1000)


def spin(workplace):
    while True:
        pass


def eat(workplace):
    eaten = []
    while True:
        eaten.append(bytes(bytearray(b"x") * 20_000_000))


def close_pipe(workplace):
    os.close(workplace.connection.fileno())
    time.sleep(1000)


def write_everywhere(workplace=None):
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            os.write(number, b"no business of mine\n")


def write_everywhere_and_sleep(workplace):
    write_everywhere()
    time.sleep(1000)


def write_half_an_answer(workplace):
    os.write(workplace.connection.fileno(), b"\0\0\1\0\x80\5")
    time.sleep(1000)


def leave_shared_memory(workplace):
    """As torch does whose helper is dead: a tensor's, and one of a process long ago."""
    paths = [f"/dev/shm/torch_{os.getpid()}_{n}_0" for n in (1, 2)]
    for path in paths:
        with open(path, "xb") as file:
            file.write(b"x")
    os.utime(paths[1], (0, 0))
    return paths


def leave_grandchildren(workplace):
    """One in the same session, one in its own, one whose parent has gone; gives their pids."""
    first = _fork(sleep_forever)
    second = _fork(lambda: (os.setsid(), sleep_forever()))
    read, write = os.pipe()
    middle = _fork(lambda: os.write(write, b"%d" % _fork(lambda: (os.setsid(), sleep_forever()))))
    os.waitpid(middle, 0)
    return first, second, int(os.read(read, 20))


def leave_grandchildren_and_die(workplace):
    workplace.connection.send(leave_grandchildren(workplace))
    os.kill(os.getpid(), signal.SIGKILL)


def _fork(main):
    pid = os.fork()
    if pid == 0:
        try:
            main()
        finally:
            os._exit(0)
    return pid


ACTIONS = {
    "segfault": lambda _: ctypes.string_at(0),
    "abort": lambda _: os.abort(),
    "exit": lambda _: os._exit(3),
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "pid": lambda _: os.getpid(),
    "cores": lambda _: subprocess.check_output(["sh", "-c", "ulimit -c"], text=True).strip(),
    "temporary": lambda _: tempfile.mkstemp()[1],
    **{
        action.__name__: action
        for action in (
            sleep_forever, sleep_holding_the_gil, sleep_and_ignore_signals, spin, eat, close_pipe,
            write_everywhere, write_everywhere_and_sleep, write_half_an_answer,
            leave_shared_memory,
            leave_grandchildren, leave_grandchildren_and_die,
        )
    },
}  # fmt: skip


@pytest.fixture
def child():
    made = fork(echo)
    yield made
    made.close()
    assert not psutil.pid_exists(made.pid) and not os.path.exists(made.scratch)


def ask(child: Child, request: str, limits: Limits = GENEROUS):
    child.send(request)
    return await_answer(child, limits, lambda: None)


def is_running(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def test_answers_and_ends_when_there_is_no_more(child):
    assert ask(child, "hello") == "hello"
    assert child.page.read() == "at hello"
    assert ask(child, "pid") == child.pid != os.getpid()
    assert ask(child, "cores") == "0"
    assert os.path.dirname(ask(child, "temporary")) == child.scratch
    child.send(None)
    with pytest.raises(ChildEnded) as ended:
        await_answer(child, GENEROUS, lambda: None)
    assert ended.value.returncode == 0 and not ended.value.hung_up


@pytest.mark.parametrize(
    ("request_", "returncode", "stack"),
    [
        ("segfault", -signal.SIGSEGV, "in string_at"),
        ("abort", -signal.SIGABRT, "in <lambda>"),
        ("exit", 3, ""),
        ("kill", -signal.SIGKILL, ""),
    ],
)
def test_a_death_is_told(child, request_, returncode, stack):
    assert ask(child, "hello") == "hello"
    with pytest.raises(ChildEnded) as ended:
        ask(child, request_)
    assert ended.value.returncode == returncode and not ended.value.hung_up
    assert child.page.read() == f"at {request_}"
    assert stack in child.stacks()
    with pytest.raises(ChildEnded):
        child.send("hello")


def test_a_child_that_hangs_up_is_ended(child):
    with pytest.raises(ChildEnded) as ended:
        ask(child, "close_pipe")
    assert ended.value.hung_up


@pytest.mark.parametrize("action", ["write_everywhere", "write_everywhere_and_sleep"])
def test_a_child_that_writes_into_all_descriptors_is_ended(child, action):
    with pytest.raises(ChildEnded) as ended:
        ask(child, action, Limits(5.0))
    assert ended.value.hung_up


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm")
def test_shared_memory_goes_with_it(child):
    its_own, another = ask(child, "leave_shared_memory")
    child.end()
    assert not os.path.exists(its_own) and os.path.exists(another)
    os.unlink(another)


def test_it_cannot_write_into_what_it_was_forked_with():
    ours, theirs = Pipe()
    one, other = socket.socketpair()
    made = fork(echo)
    with contextlib.suppress(ChildEnded):
        ask(made, "write_everywhere")
    made.close()
    theirs.send("ours")
    assert ours.recv() == "ours" and not ours.poll(0)
    assert not wait([one, other], 0)
    for thing in (ours, theirs, one, other):
        thing.close()


@pytest.mark.parametrize(
    ("action", "signature"),
    [
        (sleep_forever, "stuck"),
        (write_half_an_answer, "stuck"),
        (sleep_holding_the_gil, "stuck"),
        (spin, "still computing"),
    ],
)
def test_no_answer_in_time(child, action, signature):
    with pytest.raises(NoAnswer) as caught:
        ask(child, action.__name__, Limits(1.0))
    assert caught.value.is_timeout and caught.value.signature == signature
    assert f"in {action.__name__}" in child.stacks()


def test_signals_that_are_blocked_do_not_save_it(child):
    with pytest.raises(NoAnswer) as caught:
        ask(child, "sleep_and_ignore_signals", Limits(0.5))
    assert caught.value.signature == "stuck"
    assert not is_running(child.pid)


def test_too_much_memory(child):
    with pytest.raises(NoAnswer) as caught:
        ask(child, "eat", Limits(60.0, memory_bytes=2e9))
    assert not caught.value.is_timeout and "GiB" in caught.value.text


@pytest.mark.parametrize("end", ["close", "die"])
def test_grandchildren_end_with_it(child, end):
    pids = ask(child, "leave_grandchildren" + ("_and_die" if end == "die" else ""))
    if end == "close":
        assert all(map(is_running, pids))
    else:
        with pytest.raises(ChildEnded):
            await_answer(child, GENEROUS, lambda: None)
    child.close()
    assert not any(map(is_running, pids))


def test_what_is_raised_while_waiting_ends_the_wait(child):
    def interrupt():
        raise KeyboardInterrupt

    child.send("sleep_forever")
    with pytest.raises(KeyboardInterrupt):
        await_answer(child, GENEROUS, interrupt)


_WATCHER = """
import sys, time
sys.path[:0] = sys.argv[1:3]
from test_child import ask, echo
from conformance.harness.isolation.child import fork
child = fork(echo)
print(ask(child, "temporary"), child.pid, *ask(child, "leave_grandchildren"), flush=True)
child.send("sleep_forever")
time.sleep(1000)
"""


def test_all_ends_with_the_watcher():
    tests = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, "-c", _WATCHER, tests, os.path.dirname(tests)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        temporary, *pids = watcher.stdout.readline().split()
        assert os.path.exists(temporary) and all(is_running(int(pid)) for pid in pids)
        watcher.kill()
    deadline = time.monotonic() + 30
    while any(is_running(int(pid)) for pid in pids) or os.path.exists(os.path.dirname(temporary)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


_SPAWNED = """
import sys
sys.path.insert(0, sys.argv[1])
from conformance.harness.isolation.child import workplace_of_spawned
workplace = workplace_of_spawned(sys.argv)
workplace.settle()
while (request := workplace.connection.recv()) is not None:
    workplace.page.write("here")
    workplace.connection.send((request, __name__, workplace.is_intact()))
"""


def test_a_spawned_child_is_a_new_interpreter():
    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    child = spawn([sys.executable, "-c", _SPAWNED, checkout])
    try:
        assert ask(child, "hello") == ("hello", "__main__", True)
        assert child.page.read() == "here"
        assert isinstance(child.connection, Connection)
    finally:
        child.close()
    assert not is_running(child.pid)


def test_return_codes_in_words():
    assert describe_returncode(-11) == ("died of SIGSEGV (Segmentation fault)", "SIGSEGV")
    assert describe_returncode(3)[1] == "exit code 3"
    assert "out-of-memory" in describe_returncode(-9)[0]
    assert describe_returncode(None)[1] == "no exit code"


def test_stacks_leave_out_what_is_outside_and_keep_native_frames():
    written = (
        'Fatal Python error: Aborted\n\nThread 0x1:\n  File "a.py", line 1 in kernel\n'
        '  File "b.py", line 2 in outermost\n  File "c.py", line 3 in pytest\n'
        "\nExtension modules: numpy (total: 1)\n"
    )
    stderr = "chatter\nSIGABRT(6), PID: 7, Thread 7: \nframe #0: raise\n"
    text = stacks_of(written, stderr, "outermost")
    assert "in kernel" in text and "in outermost" in text and "frame #0: raise" in text
    assert "pytest" not in text and "Extension" not in text and "chatter" not in text
