"""Messages between a worker and its parent: framed, and signed for one job.

The function that a worker evaluates runs in the worker's own process, so it can write into any
descriptor, also into that of the answers. Each message therefore carries a digest made
with a key. The parent makes a new key for each job and sends it with the job. Other bytes are
refused before anything in them is unpickled. This finds accidents. It does not stop a function that
searches its own process for the key.
"""

import hashlib
import os
import socket
import struct
import time
from collections import deque
from contextlib import suppress

HEADER = struct.Struct(">4sQ16s")
"""It comes before a message: a mark, the length, and the digest."""
MARK = b"frtn"
KEY_BYTES = DIGEST_BYTES = 16
NO_KEY = b""
"""The key of messages to a worker, because nobody else can write them."""
CHUNK_BYTES = 2**20


class ForeignMessageError(Exception):
    """Bytes that are no answer to the current job."""


def frame(message: bytes, key: bytes) -> bytes:
    """Return the header of a message."""
    return HEADER.pack(MARK, len(message), _digest(message, key))


def _digest(message: bytes, key: bytes) -> bytes:
    if key == NO_KEY:
        return bytes(DIGEST_BYTES)
    return hashlib.blake2b(message, digest_size=DIGEST_BYTES, key=key).digest()


class ParentEnd:
    """The parent's end of the channel: no method waits for the worker."""

    def __init__(self, connection: socket.socket, most_bytes: int | None) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._most = most_bytes
        self._unsent: deque[memoryview] = deque()
        self._received = bytearray()
        self._length: int | None = None
        """The length of the message that is arriving, as soon as it is known."""
        self.heard_at = 0.0
        """The time at which the last bytes came."""

    def fileno(self) -> int:
        """Return the descriptor, for `poll`."""
        return self._socket.fileno()

    @property
    def has_unsent(self) -> bool:
        """True while the worker has yet to read something."""
        return bool(self._unsent)

    @property
    def has_partial(self) -> bool:
        """True while a message has begun to arrive and has not ended."""
        return bool(self._received)

    def post(self, message: bytes) -> None:
        """Send a message, now or as soon as the worker reads."""
        self._unsent += memoryview(frame(message, NO_KEY)), memoryview(message)
        self.flush()

    def flush(self) -> None:
        """Send what can be sent at once."""
        # A worker that died is noticed when its end is read.
        with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._unsent:
                sent = self._socket.send(self._unsent[0])
                if rest := self._unsent.popleft()[sent:]:
                    self._unsent.appendleft(rest)

    def read(self, key: bytes) -> bytes | None:
        """Return a message signed with the key; None if it has not arrived in full.

        EOFError at the end. It reads no further than this message, however much a trial writes.
        """
        while missing := self._missing():
            try:
                chunk = self._socket.recv(min(missing, CHUNK_BYTES))
            except BlockingIOError:
                return None
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise EOFError
            self._received += chunk
            self.heard_at = time.monotonic()
            self._look_at_header()
        _, _, digest = HEADER.unpack_from(self._received)
        message = bytes(memoryview(self._received)[HEADER.size :])
        self._received, self._length = bytearray(), None
        if _digest(message, key) != digest:
            raise ForeignMessageError
        return message

    def has_answer(self) -> bool:
        """Return True if an answer has begun to arrive that nobody has read."""
        with suppress(OSError):
            seen = self._socket.recv(HEADER.size, socket.MSG_PEEK)
            return len(seen) == HEADER.size and self._is_header(seen)
        return False

    def hang_up(self) -> None:
        """End the conversation, and with it the worker."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the descriptor back."""
        self._unsent.clear()
        self._socket.close()

    def _missing(self) -> int:
        length = HEADER.size if self._length is None else HEADER.size + self._length
        return length - len(self._received)

    def _look_at_header(self) -> None:
        if self._length is None and len(self._received) == HEADER.size:
            if not self._is_header(self._received):
                raise ForeignMessageError
            self._length = HEADER.unpack(self._received)[1]

    def _is_header(self, header: bytes | bytearray) -> bool:
        mark, length, _ = HEADER.unpack(header)
        return mark == MARK and (self._most is None or length <= self._most)


class WorkerEnd:
    """The worker's end of the channel. It waits, because a worker has nothing else to do."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def receive(self) -> bytes:
        """Return the next message; EOFError when the parent has hung up."""
        mark, length, digest = HEADER.unpack(self._exactly(HEADER.size))
        message = bytes(self._exactly(length))
        if mark != MARK or _digest(message, NO_KEY) != digest:
            raise EOFError("the channel holds what the parent did not send")
        return message

    def send(self, message: bytes, key: bytes) -> None:
        """Send a message for the job whose key this is."""
        header = frame(message, key)
        # One write for a short message: each write takes its own share of the socket's buffer.
        is_short = len(message) <= CHUNK_BYTES
        for part in (header + message,) if is_short else (header, message):
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def close(self) -> None:
        """Close the channel in a process that must not answer."""
        with suppress(OSError):
            os.close(self._descriptor)

    def _exactly(self, length: int) -> bytearray:
        received = bytearray()
        while len(received) < length:
            chunk = os.read(self._descriptor, min(length - len(received), CHUNK_BYTES))
            if not chunk:
                raise EOFError
            received += chunk
        return received
