"""Results: the documents of docs/formats/json.md, with attributes."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Iterator, List, Optional, TypeVar, get_args, get_type_hints


@dataclass(frozen=True)
class Quantity:
    """A number with its SI unit. A prediction has the ends of its 90 % interval, and a provenance: `recorded`,
    `interpolated`, `extrapolated` or `datasheet`."""

    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    provenance: str | None = None

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        text = f"{self.value:.4g} {self.unit}".rstrip()
        if self.low is None or self.high is None:
            return text
        source = f", {self.provenance}" if self.provenance else ""
        return f"{text} ({self.low:.4g} – {self.high:.4g}{source})"


class Fields:
    """An object of the document: its keys are attributes, and items where a key is no name in Python
    (`part["from"]`). `vars(fields)` is a dict of them. A field that the class names and the document leaves out is
    None."""

    def __init__(self, /, **fields: Any):
        vars(self).update(fields)

    def __init_subclass__(cls) -> None:
        for name in cls.__dict__.get("__annotations__", ()):
            if name not in cls.__dict__:
                setattr(cls, name, None)

    def __getitem__(self, key: str) -> Any:
        return vars(self)[key]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __contains__(self, key: object) -> bool:
        return key in vars(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class Figure(Fields):
    """A quantity of the document with further keys, such as the memory of a device with its parts."""

    value: float
    unit: str
    low: Optional[float]
    high: Optional[float]
    provenance: Optional[str]

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return str(Quantity(self.value, self.unit, self.low, self.high, self.provenance))


T = TypeVar("T")


class Table(List[T]):
    """A list of the document."""

    def to_dataframe(self) -> Any:
        """A pandas.DataFrame with a row per element. A quantity `time` becomes the columns `time`, and `time_low` and
        `time_high` if it has an interval. `attrs["units"]` has the unit of each column of quantities."""
        import pandas

        units: dict[str, str] = {}
        frame = pandas.DataFrame([columns_of(row, units) for row in self])
        frame.attrs["units"] = units
        return frame


def columns_of(row: Any, units: dict[str, str], prefix: str = "") -> dict[str, Any]:
    """The values of a row by column; adds the units of quantities."""
    if not isinstance(row, Fields):
        return {prefix or "value": row}
    columns: dict[str, Any] = {}
    for key, value in vars(row).items():
        name = prefix + key
        if isinstance(value, Quantity):
            columns[name] = value.value
            units[name] = value.unit
            if value.low is not None:
                columns[name + "_low"], columns[name + "_high"] = value.low, value.high
        elif isinstance(value, Fields):
            columns.update(columns_of(value, units, name + "."))
        else:
            columns[name] = value
    return columns


class Result(Fields):
    """The result of a command: its document, with `screen`, the text that the command prints, and `cautions`, its
    warnings. A command without a document has only these two."""

    __slots__ = ("screen", "cautions")
    screen: str
    cautions: list[str]

    def __init__(self, fields: dict[str, Any], screen: str, cautions: list[str]):
        super().__init__(**fields)
        self.screen = screen
        self.cautions = cautions

    def __reduce__(self) -> Any:
        return type(self), (vars(self), self.screen, self.cautions)

    def to_dataframe(self) -> Any:
        """A pandas.DataFrame with one row: the columns of a `Table`, without the lists of the document. `pandas.concat`
        makes a frame of several results."""
        return Table([Fields(**{key: value for key, value in vars(self).items() if not isinstance(value, list)})]).to_dataframe()

    def __str__(self) -> str:
        return self.screen

    def __repr__(self) -> str:
        return f"<rehearse.Result: {self.screen.partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        answer, _, rest = self.screen.partition("\n")
        cautions = "".join(f"<p>⚠ {html.escape(each)}</p>" for each in self.cautions)
        return (f"<div><p><b>{html.escape(answer)}</b></p>{figures_html(self)}{breakdown_html(self)}"
                f"<pre>{html.escape(rest)}</pre>{cautions}</div>")


COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#eeca3b", "#b279a2", "#9d755d", "#bab0ac")


# The figures of the report: predictions of a result, where it has them.
FIGURES = ("step_time", "ratio", "throughput", "cost_per_step", "memory_per_device")


def figures_html(result: Fields) -> str:
    """Each figure as the band of its interval on a scale from zero, with a mark at its value."""
    rows = ""
    for name in FIGURES:
        figure = vars(result).get(name)
        if isinstance(figure, Fields) and "simulated" in figure:  # next to the measured one
            figure = figure["simulated"]
        value, low, high = (getattr(figure, end, None) for end in ("value", "low", "high"))
        if low is None or high is None or not 0 <= low <= value <= high or high == 0:
            continue
        end = high * 1.05
        rows += (f'<div>{html.escape(name.replace("_", " "))}: {html.escape(str(figure))}</div>'
                 f'<div style="position:relative;height:0.8em;background:#8882">'
                 f'<div style="position:absolute;left:{low / end:.2%};width:{(high - low) / end:.2%};height:100%;'
                 f'background:{COLORS[0]}80"></div><div style="position:absolute;left:{value / end:.2%};width:2px;'
                 f'height:100%;background:{COLORS[0]}"></div></div>')
    return f'<div style="max-width:50em">{rows}</div>' if rows else ""


def breakdown_html(result: Fields) -> str:
    """The breakdown of a step as one bar of all its parts, with a legend; nothing without a breakdown."""
    parts = vars(vars(result).get("breakdown", Fields()))
    total = parts["total"].value if "total" in parts else 0
    if total <= 0:
        return ""
    shares = sorted(((float(part) / total, name) for name, part in parts.items() if name != "total"), reverse=True)
    bar = legend = ""
    for color, (share, name) in zip(COLORS, (each for each in shares if each[0] > 0)):
        bar += f'<div style="width:{share:.2%};background:{color};height:1.2em"></div>'
        legend += f'<span style="color:{color}">■</span> {html.escape(name.replace("_", " "))} {share:.1%} &nbsp; '
    return f'<div style="display:flex;max-width:50em">{bar}</div><p>{legend}</p>'


@lru_cache(maxsize=None)
def classes_of(kind: Any) -> dict[str, type[Fields]]:
    """The class of each field of a class that has fields itself, or is a table of such."""
    return {name: each for name, hint in get_type_hints(kind).items() for each in classes_in(hint)}


def classes_in(hint: Any) -> Iterator[type[Fields]]:
    if isinstance(hint, type) and issubclass(hint, Fields):
        yield hint
    for each in get_args(hint):
        yield from classes_in(each)


def typed(value: Any, kind: type[Fields] = Fields) -> Any:
    """A value of JSON as a quantity, fields of this class, a table, or itself."""
    if isinstance(value, list):
        return Table(typed(each, kind) for each in value)
    if not isinstance(value, dict):
        return value
    if "value" in value and value.keys() <= {"value", "unit", "low", "high", "provenance"}:
        return Quantity(**value)
    if kind is Fields and {"value", "unit"} <= value.keys():
        kind = Figure
    return kind(**fields_of(value, kind))


def fields_of(document: dict[str, Any], kind: type[Fields]) -> dict[str, Any]:
    """The values of a JSON object as this class has them."""
    classes = classes_of(kind)
    return {key: typed(each, classes.get(key, Fields)) for key, each in document.items()}
