"""Shared by the converters: reads published tables, and writes the files of measurements that
`rehearse validate` reads (docs/formats/measurements.md)."""

import csv
import gzip
from pathlib import Path


def rows_of(path):
    """The rows of a table as mappings from column to text; gzipped or not."""
    path = Path(path)
    opened = gzip.open(path, "rt", newline="") if path.suffix == ".gz" else open(path, newline="")
    with opened as file:
        return list(csv.DictReader(file))


def columns_of(path):
    with open(path, newline="") as file:
        return next(csv.reader(file), [])


def number(text):
    """A number as the program prints it: 1, not 1.0."""
    value = float(text)
    return repr(int(value)) if value == int(value) and abs(value) < 1e16 else repr(value)


def write(path, rows):
    """Rows as mappings; the columns are all that any row has, in the order of their first use."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
