"""A reader of Holdfast's archives that shares no code with it: docs/archive.md, as a program.

``python docs/archive/reader.py DIRECTORY`` checks every object's digest, puts every request and
layout together, and prints a line for each step. It needs Python and the package ``zstandard``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import zstandard

HERE = Path(__file__).parent
PACK = r"([^/]+/[^/]+)/packs/([^/]+)/\d{7}"
HEADER, WIRE, LAYOUT = (
    (HERE / f"{name}.dictionary").read_bytes() for name in ("header", "wire", "layout")
)


def decompress(frame: bytes, dictionary: bytes = b"") -> bytes:
    """A zstd frame; a dictionary under 8 bytes is none."""
    raw = None
    if len(dictionary) >= 8:
        raw = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdDecompressor(dict_data=raw, max_window_size=1 << 27).decompress(frame)


def numbers(data: bytes) -> list[int]:
    """The varints in ``data``."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def number(data: bytes, start: int) -> tuple[int, int]:
    """The varint at a place, and where the next one begins."""
    end = start
    while data[end] >= 0x80:
        end += 1
    return numbers(data[start : end + 1])[0], end + 1


def varint(value: int) -> bytes:
    """A number as a varint."""
    return bytes([value & 0x7F | 0x80]) + varint(value >> 7) if value > 0x7F else bytes([value])


def signed(number: int) -> int:
    """Zigzag: 0, -1, 1, -2, ... from 0, 1, 2, 3, ..."""
    return number // 2 if number % 2 == 0 else -(number // 2) - 1


def opened(header: dict, stored: list[bytes], known: bytes) -> dict[str, bytes]:
    """An object's parts by name; ``known`` is the dictionary of the part ``wire``."""
    names = [part[0] for part in header.get("parts", ())]
    assert len(names) == len(stored)
    return {
        name: decompress(part, known) if name == "wire" else part
        for name, part in zip(names, stored, strict=True)
    }


class Archive:
    """The objects of a directory store, or of any function that gives an object's bytes by its
    key.
    """

    def __init__(self, get) -> None:
        self.get = get
        self.objects = {}
        self.packed = {}
        self.entries = {}

    def unpack(self, keys) -> list[str]:
        """Take the packs among all keys apart. Gives the keys of all objects, in packs or not."""
        for pack in keys:
            if place := re.fullmatch(PACK, pack):
                header, parts, _ = self.read(pack)
                assert header["kind"] == "interval", f"{pack}: kind"
                run = f"{place[1]}/turns/{place[2]}/"
                if "objects" in header:
                    self.unpack_turns(run, header["objects"], parts)
                else:
                    self.packed |= {run + name: data for name, data in parts.items()}
        alone = [key for key in keys if not re.fullmatch(PACK, key)]
        return sorted({*alone, *self.packed, *self.entries})

    def unpack_turns(self, run: str, objects: dict, parts: dict[str, bytes]) -> None:
        """Take the parts of a pack of format 2 apart."""
        like = b""
        for turn, names in objects.items():
            length, start = number(parts[turn], 0)
            text = decompress(parts[turn][start : start + length], HEADER + like)
            like, lines, start = like or text[:32768], iter(text.split(b"\n")), start + length
            for name in names:
                told, stored = json.loads(next(lines)), []
                for _, size in told.get("stored", [("whole", told.get("whole"))]):
                    stored.append(parts[turn][start : start + size])
                    start += size
                key = f"{run}{int(turn) // 100:05d}/{turn}.{name}"
                if "whole" in told:
                    self.packed[key] = stored[0]
                else:
                    self.entries[key] = told, next(lines), stored
            assert start == len(parts[turn]), f"{run}{turn}: parts"

    def object(self, key: str) -> tuple[dict, dict[str, bytes], str]:
        """An object's header, its parts (as stored, ``wire`` decompressed), and its digest."""
        if key not in self.objects:
            self.objects[key] = self.entry(key) if key in self.entries else self.read(key)
        return self.objects[key]

    def entry(self, key: str) -> tuple[dict, dict[str, bytes], str]:
        """An object that a pack has."""
        told, text, stored = self.entries[key]
        header, known = json.loads(text), WIRE
        for source in sources(told.get("again", [])):
            assert "again" not in self.entries.get(source, [{}])[0], f"{key}: again {source}"
            known += self.literals(source)[0]
        return self.checked(key, text, header, stored, known, told["digest"])

    def read(self, key: str) -> tuple[dict, dict[str, bytes], str]:
        """Take an object apart; what is damaged is an ``AssertionError``."""
        data = self.packed[key] if key in self.packed else self.get(key)
        assert data[:4] in (b"HFA\x01", b"HFA\x02"), f"{key}: format"
        new = data[3] == 2
        if new:
            assert hashlib.sha256(data[:-8]).digest()[:8] == data[-8:], f"{key}: bytes"
            data = data[:-8]
        body, digest = data[:-32], "sha256:" + data[-32:].hex()
        length, start = number(body, 4)
        text = decompress(body[start : start + length], HEADER)
        header, start = json.loads(text), start + length
        listed, stored = header.get("parts", ()), []
        sizes = [part[1] for part in listed]
        if new:
            for place in range(len(listed)):
                sizes[place], start = number(body, start)
        for size in sizes:
            stored.append(body[start : start + size])
            start += size
        assert start == len(body), f"{key}: parts"
        if new:
            return self.checked(key, text, header, stored, WIRE, digest)
        made = hashlib.sha256(key.encode() + b"\0" + body).hexdigest()
        assert "sha256:" + made == digest, f"{key}: digest"
        return header, opened(header, stored, WIRE), digest

    def checked(self, key, text, header, stored, known, digest) -> tuple[dict, dict, str]:
        """An object of format 2, whose digest is that of what it says."""
        parts = opened(header, stored, known)
        said = b"".join(varint(len(each)) + each for each in (text, *parts.values()))
        made = hashlib.sha256(key.encode() + b"\0" + said).hexdigest()
        assert "sha256:" + made == digest, f"{key}: digest"
        return header, parts, digest

    def literals(self, key: str) -> tuple[bytes, bytes]:
        """An attempt's literals: of wire requests, and of layouts."""
        _, parts, _ = self.object(key)
        wire = parts.get("wire", b"")
        layout = decompress(parts["layout"], LAYOUT + wire) if "layout" in parts else b""
        return wire, layout

    def extents(self, key: str) -> list[list[tuple[str, int, int]]]:
        """Where the attempt's request and layout are: (source, offset, length) each."""
        header, parts, _ = self.object(key)
        recipe = numbers(
            decompress(parts["recipe.zst"]) if "recipe.zst" in parts else parts["recipe"]
        )
        if header["base"] is None:
            return flat(iter(recipe), [key, *sources(header["sources"])])
        return relative(iter(recipe), self.extents(header["base"]), key)

    def documents(self, key: str) -> tuple[bytes, bytes]:
        """The attempt's request, byte for byte, and its layout."""
        made = []
        for document, extents in enumerate(self.extents(key)):
            made.append(b"".join(self.literals(s)[document][o : o + n] for s, o, n in extents))
        header, _, _ = self.object(key)
        assert "sha256:" + hashlib.sha256(made[0]).hexdigest() == header["request"]["digest"], (
            f"{key}: request"
        )
        lines = made[1].split(b"\n")[:-1]
        listed = json.dumps(
            ["sha256:" + hashlib.sha256(line).hexdigest() for line in lines], separators=(",", ":")
        )
        assert (
            "sha256:" + hashlib.sha256(listed.encode()).hexdigest() == header["layout"]["digest"]
        ), f"{key}: layout"
        return made[0], made[1]

    def response(self, key: str) -> bytes:
        """A step's response as received."""
        header, parts, _ = self.object(key)
        reply = header["reply"]
        said = reply["text"] + "".join(call["arguments"] for call in reply["tool_calls"])
        known = said.encode("utf-8", "surrogatepass")
        body = decompress(parts["response"], known) if "response" in parts else b""
        assert "sha256:" + hashlib.sha256(body).hexdigest() == header["response"]["digest"], (
            f"{key}: response"
        )
        return body


def flat(words, names: list[str]) -> list[list[tuple[str, int, int]]]:
    """A flat recipe: documents of extents of the named attempts, the attempt itself first."""
    documents = []
    for count in words:
        ends, document = [0] * len(names), []
        for _ in range(count):
            number, length = next(words), next(words)
            offset = ends[number] + signed(next(words))
            ends[number] = offset + length
            document.append((names[number], offset, length))
        documents.append(document)
    return documents


def relative(
    words, base: list[list[tuple[str, int, int]]], own: str
) -> list[list[tuple[str, int, int]]]:
    """A relative recipe: documents of copies from the base's documents, and of own literals."""
    documents = []
    for count, old in zip(words, base, strict=False):
        end, written, document = 0, 0, []
        for _ in range(count):
            length, copied = divmod(next(words), 2)
            if copied:
                offset = end + signed(next(words))
                end = offset + length
                document += cut(old, offset, length)
            else:
                document.append((own, written, length))
                written += length
        documents.append(document)
    return documents


def cut(
    extents: list[tuple[str, int, int]], offset: int, length: int
) -> list[tuple[str, int, int]]:
    """The extents of a stretch of a document."""
    found, at = [], 0
    for source, start, size in extents:
        first, last = max(offset, at), min(offset + length, at + size)
        if first < last:
            found.append((source, start + first - at, last - first))
        at += size
    return found


def sources(groups: list[list]) -> list[str]:
    """The keys that an attempt's ``sources`` stand for."""
    found = []
    for prefix, *pairs in groups:
        turn = 0
        for change, number in zip(pairs[::2], pairs[1::2], strict=True):
            turn += change
            found.append(f"{prefix}{turn // 100:05d}/{turn:07d}.attempt-{number:03d}")
    return found


def main(directory: str) -> None:
    """See the module's docstring."""
    root = Path(directory)
    archive = Archive(lambda key: (root / key).read_bytes())
    keys = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    for key in archive.unpack(keys):
        if key.startswith("_holdfast/"):
            continue
        header, _, digest = archive.object(key)
        if header["kind"] == "step":
            request, layout = archive.documents(header["attempt"]["key"])
            received = archive.response(key)
            told = (
                f"{len(request)} bytes sent, {layout.count(10)} segments, {len(received)} bytes"
                " received"
            )
            print(f"{key}  {digest[:19]}  {told}")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
