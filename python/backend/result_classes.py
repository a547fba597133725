"""Writes the module of the classes of results. The tables of docs/formats/json.md name their fields, and documents of
the commands have the types of these.

usage: result_classes.py PAGE DOCUMENT... > python/rehearse/results.py

A document is of the first table that names all its keys; the tables of its command come before those of others. A
field is Optional if null is one of its values, or if only some documents of a table have it. It is Any if no document
has it, or if some are of one kind and some of another. Where documents of another table never have it, its type is a
union with Any: the caller knows the kind of file, so that a type checker need not ask for a proof. Objects with the same
keys are of one class."""

import collections
import json
import keyword
import re
import sys

HEAD = '''"""The classes of results, with the types of their fields. A field that a document leaves out is None.

Written by python/backend/result_classes.py, from docs/formats/json.md and documents of the commands."""

from __future__ import annotations

from typing import Any, Optional, Union

from ._values import Fields, Figure, Quantity, Result, Table
'''

QUANTITY = {"value", "unit", "low", "high", "provenance"}
TAKEN = {"Any", "Optional", "Union", "Fields", "Figure", "Quantity", "Result", "Table"}


class Shape:
    """What a field holds, in all documents."""

    def __init__(self):
        self.scalars = set()  # the types' names
        self.quantity = False
        self.objects = collections.Counter()  # by the number of the table of their document
        self.counts = collections.Counter()  # the objects that have a key, by table and key
        self.fields = {}  # of the objects
        self.rows = None  # of lists

    def add(self, value, table):
        if isinstance(value, list):
            self.rows = self.rows or Shape()
            for each in value:
                self.rows.add(each, table)
        elif not isinstance(value, dict):
            self.scalars.add(type(value).__name__)
        elif "value" in value and value.keys() <= QUANTITY:
            self.quantity = True
        else:
            self.objects[table] += 1
            for key, each in value.items():
                self.fields.setdefault(key, Shape()).add(each, table)
                self.counts[table, key] += 1

    def add_documented(self, path, meaning, table):
        """Adds a field that the page names, such as ["ranks[]", "clock_fit"]: not all objects need have it. It may be null
        if the meaning has a clause on that; so may be a field that the meaning describes as `field` (`null` ...)."""
        if not path:
            for key in re.findall(r"`(\w+)` \(`null`", meaning):
                self.add_null(key)
        name = path[0].replace("[]", "") if path else ""
        if not name.isidentifier():
            return
        field = self.fields.setdefault(name, Shape())
        self.counts[table, name] += 0
        if name != path[0]:
            field.rows = field = field.rows or Shape()
        elif len(path) == 1 and re.search(r"[;.] `null`", meaning):
            field.scalars.add("NoneType")
        field.add_documented(path[1:], meaning, table)

    def add_null(self, key):
        """Lets the fields of this name be null."""
        for name, each in self.fields.items():
            if name == key:
                each.scalars.add("NoneType")
            (each.rows or each).add_null(key)

    def merge(self, other):
        self.scalars |= other.scalars
        self.quantity |= other.quantity
        self.objects += other.objects
        for place, count in other.counts.items():
            self.counts[place] += count
        for key, each in other.fields.items():
            self.fields.setdefault(key, Shape()).merge(each)
        if other.rows:
            self.rows = self.rows or Shape()
            self.rows.merge(other.rows)

    def inner(self, path):
        """The shapes with fields inside of this one, and their paths."""
        if self.objects and len(path) > 1:
            yield path, self
        for key, each in self.fields.items():
            yield from each.inner((*path, camel(key)))
        if self.rows:
            yield from self.rows.inner((*path[:-1], path[-1] + "Row"))

    def type_of(self, key, text):
        """The type of a field whose values have this one."""
        if text == "Any":
            return text
        partly = [table for table, count in self.objects.items()
                  if (table, key) in self.counts and self.counts[table, key] < count]
        never = [table for table in self.objects if (table, key) not in self.counts]
        text = optional(text) if partly else text
        return f"Union[{text}, Any]" if never else text


def optional(text):
    return text if text.startswith("Optional[") else f"Optional[{text}]"


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_ -]", name))


def names_of(table):
    return {path[0].replace("[]", "") for path, _ in table}


def tables_of(page):
    """The tables of keys, as the command of the section and the paths of the keys with their meanings; and the keys that
    are common to several commands."""
    tables, common = [], {"schema", "command"}
    for section in page.split("\n## ")[1:]:
        command, _, text = section.partition("\n")
        if command.startswith("Common"):
            common.update(re.findall(r"`(\w+)", text))
            continue
        for rows in re.findall(r"^\| key \|.*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE):
            cells = [row.split("|", 2)[1:] for row in rows.splitlines()]
            tables.append((command, [(key.split("."), meaning) for keys, meaning in cells
                                     for key in re.findall(r"`([^`]+)`", keys)]))
    return tables, common


def table_of(document, tables, common):
    """The number of the table of a document."""
    own = document["command"].split()[0]
    for number in sorted(range(len(tables)), key=lambda each: tables[each][0] != own):
        if document.keys() <= names_of(tables[number][1]) | common:
            return number
    raise SystemExit(f"no table names all keys of {document['command']}: {', '.join(document)}")


def unite(shapes):
    """Makes one of the shapes of objects that are in one place of the documents of a table, or have the same keys and,
    if these are few, the same name."""
    groups = {}
    for path, shape in [each for name, shape in shapes.items() for each in shape.inner((name,))]:
        name = path[-1] if len(shape.fields) < 4 else ""
        for group in ((path[1:], *sorted(shape.objects)), (name, *sorted(shape.fields))):
            groups.setdefault(group, {})[id(shape.__dict__)] = shape
    for first, *others in [list(group.values()) for group in groups.values() if len(group) > 1]:
        for other in others:
            first.merge(other)
            other.__dict__ = first.__dict__
        return unite(shapes)


def class_names(shapes):
    """The names of the classes of shapes: as few parts of their paths as tell one from others."""
    named, users = {}, {}
    inner = [(path, id(shape.__dict__)) for name, shape in shapes.items() for path, shape in shape.inner((name,))]
    for path, shape in inner:
        for length in range(1, len(path) + 1):
            users.setdefault("".join(path[-length:]), set()).add(shape)
    for path, shape in inner:
        candidates = ("".join(path[-length:]) for length in range(1, len(path) + 1))
        named.setdefault(shape, next(name for name in candidates if len(users[name]) == 1 and name not in TAKEN))
    return named


class Module:
    def __init__(self, page, documents):
        tables, common = tables_of(page)
        self.documented = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page))))
        self.shapes, written = {}, {}  # by command; in order
        for document in documents:
            shape = self.shapes.setdefault(camel(document["command"]), Shape())
            table = table_of(document, tables, common)
            shape.add(document, table)
            written[shape, table] = None
        for shape, table in written:
            for path, meaning in tables[table][1]:
                shape.add_documented(path, meaning, table)
        unite(self.shapes)
        self.names = class_names(self.shapes)
        self.classes = {}

    def type_of(self, shape):
        kinds = ["Quantity"] if shape.quantity else []
        if shape.objects:
            kinds.append(self.add_class(shape))
        if shape.rows:
            kinds.append(f"Table[{self.type_of(shape.rows)}]")
        scalars = shape.scalars - {"NoneType"}
        kinds += sorted(scalars - {"int"} if "float" in scalars else scalars)
        if not kinds or "Any" in kinds or (len(kinds) > 1 and not scalars.issuperset(kinds)):
            return "Any"  # a checker would let a program use only what all have in common
        text = kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]"
        return optional(text) if "NoneType" in shape.scalars else text

    def add_class(self, shape):
        """Adds the class of these fields; returns its name, or Any if the input decides about the names of fields."""
        if not self.documented.issuperset(shape.fields):
            return "Any"
        name = self.names[id(shape.__dict__)]
        if name not in self.classes:
            self.classes[name] = ""  # its place
            figure = {"value", "unit"} <= shape.fields.keys()
            self.classes[name] = class_text(name, "Figure" if figure else "Fields", {
                key: shape.type_of(key, self.type_of(each)) for key, each in shape.fields.items()
                if not (figure and key in QUANTITY)})
        return name

    def text(self):
        results = [class_text(name + "Result", "Result",
                              {key: shape.type_of(key, self.type_of(each)) for key, each in shape.fields.items()})
                   for name, shape in sorted(self.shapes.items())]
        return HEAD + "".join([*self.classes.values(), *results])


def class_text(name, base, types):
    fields = "".join(f"    {key}: {text}\n" for key, text in types.items() if not keyword.iskeyword(key))
    return f"\n\nclass {name}({base}):\n{fields or '    pass' + chr(10)}"


def main():
    page, *documents = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    loaded = []
    for each in documents:
        with open(each, encoding="utf-8") as file:
            loaded.append(json.load(file))
    print(Module(text, loaded).text(), end="")


if __name__ == "__main__":
    main()
