"""Compressed bytes to text bytes, in pieces of bounded size, up to the very byte where the data is damaged.

A decoder is fed what has been read, and yields what that gives. When it meets a fault, it first yields every byte in
front of it and then raises `Damage`. `close` raises `Damage` when the data stops where it should go on.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Protocol

import zstandard

from deltastar.rdf.formats import Compression


class Damage(Exception):
    """Data that is not what it should be; the text says in which way."""


class Decoder(Protocol):
    """What turns stored bytes into text bytes."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the text that these bytes bring."""

    def close(self) -> None:
        """Says that no more bytes come."""


def decoder_of(compression: Compression, piece_bytes: int) -> Decoder:
    """A new decoder. It yields pieces of at most `piece_bytes`, or of one zstd block (128 KiB)."""
    if compression is Compression.GZIP:
        return Gunzip(piece_bytes)
    if compression is Compression.ZSTD:
        return Unzstd()
    return Plain()


class Plain:
    """Text that is not compressed."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the bytes as they are."""
        if data:
            yield data

    def close(self) -> None:
        """Nothing can be missing."""


class Gunzip:
    """Gzip, of one member or several.

    >>> import gzip
    >>> b"".join(Gunzip(1000).feed(gzip.compress(b"a") + gzip.compress(b"b")))
    b'ab'
    """

    def __init__(self, piece_bytes: int) -> None:
        self._piece_bytes = piece_bytes
        self._member: zlib._Decompress | None = None
        self._head = b""  # the first bytes of the member: they tell damaged gzip from what is no gzip
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the text that these bytes bring."""
        while data:
            if self._member is None:
                if self._members and not (data := data.lstrip(b"\0")):
                    return  # zeros may pad the end
                self._member, self._head = zlib.decompressobj(wbits=31), b""
            self._head = (self._head + data)[:2]
            data = yield from self._inflate(self._member, data)

    def close(self) -> None:
        """Says that no more bytes come."""
        if self._member is not None or not self._members:
            raise Damage("its gzip data is cut short")

    def _inflate(self, member: zlib._Decompress, data: bytes) -> Generator[bytes, None, bytes]:
        """Yields pieces; returns the bytes behind the end of the member."""
        while True:
            before = member.copy()
            try:
                piece = member.decompress(data, self._piece_bytes)
            except zlib.error as error:
                yield from _up_to_fault(before, data, self._piece_bytes)
                raise Damage(self._reason(error)) from None
            if piece:
                yield piece
            if member.eof:
                self._member, self._members = None, self._members + 1
                return member.unused_data
            data = member.unconsumed_tail
            if not data and len(piece) < self._piece_bytes:
                return b""

    def _reason(self, error: zlib.error) -> str:
        if self._head == b"\x1f\x8b":
            return f"its gzip data is damaged ({str(error).rpartition(': ')[2]})"
        if self._members:
            return "something other than gzip data follows its gzip data"
        return "it is not gzip data, whatever its name says"


def _up_to_fault(decoder: zlib._Decompress, data: bytes, piece_bytes: int) -> Iterator[bytes]:
    """Closes in on a fault: what comes out in front of it, by ever fewer bytes of input, on copies of the decoder."""
    step = len(data)
    while True:
        attempt = decoder.copy()
        try:
            piece = attempt.decompress(data[:step], piece_bytes)
        except zlib.error:
            if step == 0:
                return
            step //= 2
            continue
        if step == 0 and not piece:
            return
        if piece:
            yield piece
        decoder, data = attempt, attempt.unconsumed_tail + data[step:]


class Unzstd:
    """Zstandard, of one frame or several; skippable frames are skipped.

    The library gives nothing of a call in which it meets a fault, so it is fed a block at a time: RFC 8878 makes their
    ends easy to find.

    >>> b"".join(Unzstd().feed(zstandard.compress(b"a") + zstandard.compress(b"b")))
    b'ab'
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._frames = 0
        self._decoder = zstandard.ZstdDecompressor().decompressobj()
        self._part = b""  # the beginning of the part that is being read: a frame's header, a block's header
        self._has_checksum = self._is_last = False
        self._expect(4, self._magic)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the text that these bytes bring."""
        buffer, start = self._buffer, 0
        buffer += data
        try:
            while len(buffer) - start >= self._size:
                part = bytes(buffer[start : start + self._size])
                start += self._size
                if piece := self._take(part):
                    yield piece
        except zstandard.ZstdError as error:
            reason = str(error).rpartition(": ")[2]
            raise Damage(f"its zstd data is damaged ({reason[:1].lower()}{reason[1:]})") from None
        finally:
            del buffer[:start]

    def close(self) -> None:
        """Says that no more bytes come."""
        if self._buffer or self._take != self._magic or not self._frames:
            if self._take == self._magic and not zstandard.FRAME_HEADER.startswith(self._buffer[:4]):
                raise Damage("it is not zstd data, whatever its name says")
            raise Damage("its zstd data is cut short")

    def _expect(self, size: int, take: Callable[[bytes], bytes]) -> bytes:
        """Sets how many bytes the next part has, and who takes it."""
        self._size, self._take = size, take
        return b""

    def _magic(self, part: bytes) -> bytes:
        if part == zstandard.FRAME_HEADER:
            self._part = part
            return self._expect(1, self._descriptor)
        if part[1:] == b"\x2a\x4d\x18" and 0x50 <= part[0] <= 0x5F:
            return self._expect(4, lambda size: self._expect(int.from_bytes(size, "little"), self._end))
        if self._frames:
            raise Damage("something other than zstd data follows its zstd data")
        raise Damage("it is not zstd data, whatever its name says")

    def _descriptor(self, part: bytes) -> bytes:
        """How long the rest of the frame's header is: window, dictionary and content size (RFC 8878, 3.1.1.1)."""
        flags, self._part = part[0], self._part + part
        is_single = flags >> 5 & 1
        size_of_content = (is_single, 2, 4, 8)[flags >> 6]
        self._has_checksum = bool(flags >> 2 & 1)
        return self._expect(1 - is_single + (0, 1, 2, 4)[flags & 3] + size_of_content, self._header)

    def _header(self, part: bytes) -> bytes:
        self._decoder = zstandard.ZstdDecompressor().decompressobj()
        piece = self._decoder.decompress(self._part + part)
        self._expect(3, self._block_header)
        return piece

    def _block_header(self, part: bytes) -> bytes:
        header, self._part = int.from_bytes(part, "little"), part
        self._is_last = bool(header & 1)
        is_repeated_byte = header >> 1 & 3 == 1
        return self._expect(1 if is_repeated_byte else header >> 3, self._block)

    def _block(self, part: bytes) -> bytes:
        piece = self._decoder.decompress(self._part + part)
        if not self._is_last:
            self._expect(3, self._block_header)
        elif self._has_checksum:
            self._expect(4, self._checksum)
        else:
            self._end(b"")
        return piece

    def _checksum(self, part: bytes) -> bytes:
        piece = self._decoder.decompress(part)
        self._end(b"")
        return piece

    def _end(self, part: bytes) -> bytes:
        self._frames += 1
        return self._expect(4, self._magic)
