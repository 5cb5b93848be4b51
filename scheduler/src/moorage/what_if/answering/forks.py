"""Does work in a fork of this process, which changes nothing here."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable

import msgspec

from moorage.base.errors import DecodeError, LimitReachedError, MoorageError, UsageError
from moorage.what_if.answering.messages import LIMIT_REACHED, Reply


class ForkEndedError(MoorageError):
    """A part of an answer, computed in a fork, came to no result."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body.decode())
        self.reply = reply


def result_of(reply: Reply) -> bytes:
    """Return the bytes of a reply.

    Raises
    ------
    LimitReachedError
        A limit was reached.
    UsageError
        The question cannot be answered as it is.
    ForkEndedError
        Anything else went wrong.
    """
    if reply.code == 200:
        return reply.body
    if reply.code == LIMIT_REACHED:
        raise LimitReachedError(reply.body.decode())
    if reply.code == 400:
        raise UsageError(reply.body.decode())
    raise ForkEndedError(reply)


def forked(work: Callable[[], bytes], *, seconds_most: int) -> Reply:
    """Do work in a child process.

    Parameters
    ----------
    seconds_most
        After so long an alarm ends the child; a part that checks its limits ends sooner.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _work_and_exit(work, write, seconds_most)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    _pid, status = os.waitpid(pid, 0)
    if status == 0 and text:
        return msgspec.msgpack.decode(text, type=Reply)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return Reply(LIMIT_REACHED, f"the answer took longer than {seconds_most} s".encode())
    return Reply(500, f"the question ended with wait status {status}".encode())


def _work_and_exit(work: Callable[[], bytes], write: int, seconds_most: int) -> None:
    """Do the work, write the reply and end this process; nothing is left to the caller."""
    status = 1
    try:
        gc.disable()  # a collection would touch, and so copy, every object
        signal.alarm(seconds_most)  # ends this process
        reply = _replied(work)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(reply))
        status = 0
    finally:
        os._exit(status)


def _replied(work: Callable[[], bytes]) -> Reply:
    try:
        return Reply(200, work())
    except ForkEndedError as error:
        return error.reply
    except LimitReachedError as error:
        return Reply(LIMIT_REACHED, str(error).encode())
    except (UsageError, DecodeError, msgspec.DecodeError) as error:
        return Reply(400, str(error).encode())
    except RecursionError:
        return Reply(400, b"the body is nested too deeply")
    except MemoryError:
        return Reply(LIMIT_REACHED, b"there is not enough memory for the answer")
    except Exception as error:  # the caller is told; the process that serves goes on
        return Reply(500, f"{type(error).__name__}: {error}".encode())
