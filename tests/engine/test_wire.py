"""Messages arrive whole, whatever the pipe does to them."""

import io

import pytest

from isoscope.engine import wire
from isoscope.errors import UndefinedError


class Dripping(io.RawIOBase):
    """A pipe that gives and takes a few bytes at a time."""

    def __init__(self, content=b""):
        self.content = bytearray(content)

    def readinto(self, buffer):
        part = self.content[: min(3, len(buffer))]
        buffer[: len(part)] = part
        del self.content[: len(part)]
        return len(part)

    def write(self, data):
        self.content += data[:3]
        return len(data[:3])


def test_messages_come_one_by_one_as_they_were_sent():
    pipe = Dripping()
    messages = [wire.At(3, 10), wire.Ready(), None, wire.Remark("x" * 1000)]
    for message in messages:
        wire.send(pipe, message)
    assert [wire.receive(pipe) for _ in messages] == messages
    with pytest.raises(EOFError):
        wire.receive(pipe)


def test_half_a_message_is_the_end():
    pipe = Dripping()
    wire.send(pipe, wire.Remark("something"))
    del pipe.content[-1]
    with pytest.raises(EOFError):
        wire.receive(pipe)


def test_an_error_of_ours_arrives_as_it_was():
    error = UndefinedError("no number", hint="take another", slug="undefined")
    found = wire.Failed.of(error, "Traceback ...").unpack()
    assert type(found) is UndefinedError
    assert str(found) == str(error) and not hasattr(found, "__notes__")


def test_a_bug_arrives_with_the_traceback_of_the_worker():
    found = wire.Failed.of(ZeroDivisionError("oh"), "Traceback: line 7").unpack()
    assert type(found) is ZeroDivisionError and str(found) == "oh"
    assert "line 7" in found.__notes__[0]


class TwoArgumentsError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class UnreadableError(Exception):
    def __reduce__(self):
        raise TypeError("cannot pickle a lock")


@pytest.mark.parametrize("error", [TwoArgumentsError(1, 2), UnreadableError()])
def test_an_error_that_cannot_be_sent_is_described(error):
    found = wire.Failed.of(error, "Traceback: line 7").unpack()
    assert type(found) is RuntimeError
    assert "line 7" in found.__notes__[0]


def test_an_error_that_only_the_worker_can_read_is_described():
    found = wire.Failed(b"cno_such_module\nNoError\n.", "Traceback: line 7").unpack()
    assert type(found) is RuntimeError and "line 7" in found.__notes__[0]
