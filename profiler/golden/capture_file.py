"""Reads captures (docs/formats/capture.md), as far as the checks of record-golden need them.

The tables and fields are read from profiler/capture/records.h.
"""

import gzip
import pathlib
import re
import struct

_RECORDS = pathlib.Path(__file__).resolve().parent.parent / "capture" / "records.h"
_PROCESS, _TEXTS, _ROWS, _TRAILER, _RECORD_BLOCK = 1, 2, 4, 7, 8
_COLUMNS = "kind time span text domain category payload_kind payload group peer reduction".split()


def _layouts():
    """Per number of a table: its name (KernelRecord → kernel), fields, and how many are texts."""
    text = re.sub(r"//[^\n]*", "", _RECORDS.read_text())
    numbers = dict(re.findall(r"(k\w+) = (\d+),", text))
    tables = {}
    for name, body in re.findall(r"struct (\w+)Record \{(.*?)\};", text, re.S):
        table = re.search(r"kTable = TableId::(\w+);", body)
        texts = int(re.search(r"kTexts = (\d+);", body).group(1))
        body = re.sub(r"static constexpr[^;]*;", "", body)
        fields = [
            field.strip()
            for group in re.findall(r"std::uint64_t\s+([^;]*);", body)
            for field in group.split(",")
        ]
        key = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
        tables[int(numbers[table.group(1)])] = (key, fields, texts)
    return tables


LAYOUTS = _layouts()


class _Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def text(self):
        n = self.varint()
        self.at += n
        return self.data[self.at - n : self.at].decode("utf-8", "replace")

    def column(self, n):
        how = self.byte()
        if how == 0:
            return [self.varint()] * n
        values = [self.varint() for _ in range(n)]
        if how == 2:
            last = 0
            for i, value in enumerate(values):
                last = (last + ((value >> 1) ^ -(value & 1))) & 0xFFFFFFFFFFFFFFFF
                values[i] = last
        return values


class Capture:
    """What one process recorded: `rows` and, by table, `tables`, each a list of dicts."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.rows, self.tables, self.ended = [], {}, False
        texts = {0: ""}
        for kind, data in self._blocks():
            block = _Bytes(data)
            if kind == _TEXTS:
                while block.at < len(data):
                    number = block.varint()
                    texts[number] = block.text()
            elif kind == _TRAILER:
                self.ended = True
            elif kind == _ROWS:
                thread, n = block.varint(), block.varint()
                columns = [block.column(n) for _ in _COLUMNS]
                for values in zip(*columns):
                    self.rows.append(dict(zip(_COLUMNS, values), thread=thread))
            elif kind == _RECORD_BLOCK:
                self._read_records(block)
        for row in self.rows:
            row["text"] = texts.get(row["text"], "")
            row["domain"] = texts.get(row["domain"], "")
        for key, fields, n_texts in LAYOUTS.values():
            for record in self.tables.get(key, []):
                for field in fields[:n_texts]:
                    record[field] = texts.get(record.get(field, 0), "")

    def _blocks(self):
        data = self.path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        at = 16
        while at + 12 <= len(data):
            kind, n, _ = struct.unpack_from("<III", data, at)
            if at + 12 + n > len(data):
                return
            yield kind, data[at + 12 : at + 12 + n]
            at += 12 + n

    def _read_records(self, block):
        table, _, n, n_fields = (block.varint() for _ in range(4))
        columns = [block.column(n) for _ in range(n_fields)]
        if table not in LAYOUTS:
            return
        key, fields, _ = LAYOUTS[table]
        self.tables.setdefault(key, []).extend(
            dict(zip(fields, values)) for values in zip(*columns)
        )

    def table(self, key):
        return self.tables.get(key, [])

    def facts(self):
        return {fact["key"]: fact["value"] for fact in self.table("fact")}

    def ranges(self, domain=None):
        return [r for r in self.rows if r["kind"] == 1 and domain in (None, r["domain"])]


def read_folder(folder):
    """The captures of a folder, largest first."""
    files = [*pathlib.Path(folder).glob("*.cap"), *pathlib.Path(folder).glob("*.cap.gz")]
    return [Capture(path) for path in sorted(files, key=lambda path: -path.stat().st_size)]
