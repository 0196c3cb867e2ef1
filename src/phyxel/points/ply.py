"""PLY files: every element and every property, as arrays.

The format is a text header that names elements (`vertex`, `face`, ...) and their properties, then their rows, in text
or in binary. A property is a number, or a list of numbers that begins with its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError

CUT_OFF = "the file is cut off: copy or export it again"
TEXT_PIECE = 2**22
"""[bytes] of text that are taken apart at once"""

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1",
    "short": "i2", "int16": "i2", "ushort": "u2", "uint16": "u2",
    "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_BYTE_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_END_OF_HEADER = re.compile(rb"(?:^|[\r\n])end_header[ \t]*(\r\n|\n|\r|$)")


class Ragged(NamedTuple):
    """A list property: the lists of all rows one after the other."""

    values: NDArray
    """shape (sum of counts,)"""
    counts: NDArray[np.int64]
    """length of each row's list, shape (rows,)"""


Column = NDArray | Ragged


@dataclass(frozen=True)
class Property:
    name: str
    dtype: np.dtype
    """of the value, or of each value of the list"""
    count_dtype: np.dtype | None = None
    """of the length that begins a list; None for a plain number"""


@dataclass(frozen=True)
class Element:
    name: str
    rows: int
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True)
class Header:
    format: str
    elements: tuple[Element, ...]
    size: int
    """[bytes], up to the first byte of data"""
    comments: tuple[str, ...] = ()


def read_ply(path: str | Path) -> dict[str, dict[str, Column]]:
    """All of a PLY file: element name -> property name -> an array (rows,), or `Ragged` for a list property."""
    return read_with_comments(path)[0]


def read_with_comments(path: str | Path) -> tuple[dict[str, dict[str, Column]], tuple[str, ...]]:
    """What `read_ply` gives, and the comments of the header."""
    path = Path(path)
    data = file_bytes(path)
    header = parse_header(data, path.name)
    body: _Body
    if header.format == "ascii":
        body = _AsciiBody(data[header.size :], path.name)
    else:
        body = _BinaryBody(data, header.size, path.name)
    content = {}
    for element in header.elements:
        content[element.name], body.start = _read_element(body, element)
    return content, header.comments


def file_bytes(path: Path) -> bytes:
    """The content of a file that must not be empty."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"{path.name}: cannot be read ({reason}); check the path and its permissions") from error
    if not data:
        raise LoadError(f"{path.name}: the file is empty; copy or export it again")
    return data


def parse_header(data: bytes, name: str) -> Header:
    """The header at the start of a PLY file's bytes; `name` is for error messages."""
    if not re.match(rb"ply[ \t]*[\r\n]", data):
        raise LoadError(f'{name}: not a PLY file: it begins with {data[:16]!r}, expected a line "ply"')
    end = _END_OF_HEADER.search(data)
    if end is None:
        raise LoadError(f'{name}: the PLY header has no "end_header" line; {CUT_OFF}')
    lines = re.split(r"\r\n|\n|\r", data[: end.start()].decode("ascii", errors="replace"))
    form = ""
    elements: list[Element] = []
    comments: list[str] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            match line.split():
                case []:
                    pass
                case ["comment" | "obj_info", *_]:
                    comments.append(line.split(maxsplit=1)[-1])
                case ["format", word, _] if not form and word in _BYTE_ORDERS:
                    form = word
                case ["element", word, rows]:
                    elements.append(_new_element(word, rows, elements))
                case ["property", *words] if form and elements:
                    elements[-1] = _with_property(elements[-1], words, _BYTE_ORDERS[form])
                case _:
                    raise ValueError("not a line of a PLY header, or out of place")
        except ValueError as error:
            raise LoadError(f"{name}: header line {number}, {line[:80]!r}: {error}") from error
    if not form:
        raise LoadError(f"{name}: the PLY header has no format line; expected one of {', '.join(_BYTE_ORDERS)}")
    return Header(form, tuple(elements), _first_byte_of_data(data, end), tuple(comments))


def _first_byte_of_data(data: bytes, end: re.Match[bytes]) -> int:
    # A header of bare \r lines may be followed by a data byte that happens to be \n: the first line tells which it is.
    bare_return = re.match(rb"ply[ \t]*\r(?!\n)", data) is not None
    return end.start(1) + 1 if bare_return and end.group(1) else end.end()


def _new_element(name: str, rows: str, before: list[Element]) -> Element:
    if any(element.name == name for element in before):
        raise ValueError("this element is there twice")
    if not rows.isdecimal():
        raise ValueError(f"expected a number of rows, not {rows}")
    return Element(name, int(rows))


def _with_property(element: Element, words: list[str], byte_order: str) -> Element:
    match words:
        case ["list", count_type, value_type, name]:
            added = Property(name, _dtype(value_type, byte_order), _dtype(count_type, byte_order))
        case [value_type, name]:
            added = Property(name, _dtype(value_type, byte_order))
        case _:
            raise ValueError("expected a type and a name, or list, two types and a name")
    if added.count_dtype is not None and added.count_dtype.kind == "f":
        raise ValueError("the length of a list must be an integer type")
    if any(known.name == added.name for known in element.properties):
        raise ValueError("this property is there twice")
    return Element(element.name, element.rows, (*element.properties, added))


def _dtype(type_name: str, byte_order: str) -> np.dtype:
    if type_name not in _TYPES:
        raise ValueError(f"unknown type {type_name}; PLY has {', '.join(_TYPES)}")
    return np.dtype(byte_order + _TYPES[type_name])


class _Body(Protocol):
    """The data after the header, measured in units: bytes of a binary file, values of a text file."""

    name: str
    start: int
    """first unit not read yet"""
    size: int
    unit: str

    def width(self, dtype: np.dtype) -> int:
        """Units that one value takes."""

    def count_at(self, position: int, dtype: np.dtype) -> int:
        """The length of the list that begins at a unit."""

    def block(self, position: int, rows: int, row_width: int, columns: int, dtype: np.dtype) -> NDArray:
        """Values at `position + row * row_width` and those that follow them, (rows, columns)."""

    def gather(self, positions: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        """Values anywhere."""


class _BinaryBody:
    unit = "bytes"

    def __init__(self, data: bytes, start: int, name: str) -> None:
        self.name, self.start, self.size = name, start, len(data)
        self._data = data

    def width(self, dtype: np.dtype) -> int:
        return dtype.itemsize

    def count_at(self, position: int, dtype: np.dtype) -> int:
        return int(np.frombuffer(self._data, dtype, 1, position)[0])

    def block(self, position: int, rows: int, row_width: int, columns: int, dtype: np.dtype) -> NDArray:
        if rows * columns == 0:
            return np.empty((rows, columns), dtype.newbyteorder("="))
        view: NDArray = np.ndarray((rows, columns), dtype, self._data, position, (row_width, dtype.itemsize))
        return view.astype(dtype.newbyteorder("="))

    def gather(self, positions: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        every_byte = np.frombuffer(self._data, np.uint8)
        chosen = every_byte[positions[:, None] + np.arange(dtype.itemsize)]
        return chosen.view(dtype)[:, 0].astype(dtype.newbyteorder("="))


class _AsciiBody:
    unit = "values"

    def __init__(self, data: bytes, name: str) -> None:
        self._values = _all_numbers(data, name)
        self.name, self.start, self.size = name, 0, len(self._values)

    def width(self, dtype: np.dtype) -> int:
        return 1

    def count_at(self, position: int, dtype: np.dtype) -> int:
        return int(self._converted(self._values[position : position + 1], dtype)[0])

    def block(self, position: int, rows: int, row_width: int, columns: int, dtype: np.dtype) -> NDArray:
        if rows * columns == 0:
            return np.empty((rows, columns), dtype)
        step = self._values.itemsize
        strides = (row_width * step, step)
        view: NDArray = np.ndarray((rows, columns), np.float64, self._values, position * step, strides)
        return self._converted(view, dtype)

    def gather(self, positions: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        return self._converted(self._values[positions], dtype)

    def _converted(self, values: NDArray[np.float64], dtype: np.dtype) -> NDArray:
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                return values.astype(dtype)
        limits = np.iinfo(dtype)
        bad = ~((values >= limits.min) & (values <= limits.max) & (values == np.floor(values)))
        if bad.any():
            raise LoadError(f"{self.name}: {values[bad].flat[0]:g} stands where the header promises {dtype.name}")
        return values.astype(dtype)


def _all_numbers(text: bytes, name: str) -> NDArray[np.float64]:
    """The numbers of a text, a piece at a time: apart, words take several times the memory of the text."""
    pieces, start = [np.empty(0)], 0
    while start < len(text):
        gap = re.compile(rb"\s").search(text, start + TEXT_PIECE)
        end = gap.start() if gap else len(text)
        pieces.append(numbers(text[start:end].split(), name))
        start = end
    return np.concatenate(pieces)


def numbers(words: list[bytes], name: str) -> NDArray[np.float64]:
    """Words of a text file as numbers, or a `LoadError` that names the first that is none."""
    try:
        return np.array(words, np.float64)
    except ValueError:
        bad = next(word for word in words if not is_number(word))
        shown = bad[:40].decode("ascii", errors="replace")
        raise LoadError(f'{name}: "{shown}" stands where a number should; the file is damaged') from None


def is_number(word: bytes) -> bool:
    """Whether a word of a text file reads as a number, nan and inf among them."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _read_element(body: _Body, element: Element) -> tuple[dict[str, Column], int]:
    """The columns of an element that begins at `body.start`, and the unit where it ends."""
    _check_room(body, element)
    if not element.properties:
        return {}, body.start
    lengths = _lengths_of_first_row(body, element) if element.rows else [0] * len(element.properties)
    if _all_rows_alike(body, element, lengths):
        return _read_alike(body, element, lengths)
    return _read_mixed(body, element)


def _check_room(body: _Body, element: Element) -> None:
    """Refuse an element whose rows would not fit in what is left even if all its lists were empty."""
    width = sum(body.width(p.count_dtype or p.dtype) for p in element.properties)
    left = body.size - body.start
    if element.rows * width > left:
        least = "at least " if any(p.count_dtype for p in element.properties) else ""
        raise LoadError(
            f'{body.name}: element "{element.name}" should have {element.rows} rows of {least}{width} {body.unit}, '
            f"{least}{element.rows * width} in all, but {left} are there ({left // width} rows); {CUT_OFF}"
        )


def _lengths_of_first_row(body: _Body, element: Element) -> list[int]:
    """Length of each property's list in the first row; 0 for plain numbers."""
    lengths = []
    position = body.start
    for item in element.properties:
        length, position = _step_over(body, element, item, position, row=0)
        lengths.append(length)
    return lengths


def _step_over(body: _Body, element: Element, item: Property, position: int, row: int) -> tuple[int, int]:
    """Length of the list at `position` (0 for a plain number), and the position behind the property."""
    head = body.width(item.count_dtype or item.dtype)
    if position + head > body.size:
        _raise_cut_off(body, element, row, head, body.size - position)
    if item.count_dtype is None:
        return 0, position + head
    length = body.count_at(position, item.count_dtype)
    if length < 0:
        raise LoadError(f'{body.name}: element "{element.name}", row {row}: "{item.name}" has length {length}')
    needed = length * body.width(item.dtype)
    position += head
    if position + needed > body.size:
        _raise_cut_off(body, element, row, needed, body.size - position)
    return length, position + needed


def _raise_cut_off(body: _Body, element: Element, row: int, needed: int, left: int) -> NoReturn:
    raise LoadError(
        f'{body.name}: element "{element.name}" breaks off in row {row + 1} of {element.rows}: '
        f"{needed} {body.unit} expected, {left} are there; {CUT_OFF}"
    )


def _offsets(body: _Body, element: Element, lengths: list[int]) -> tuple[list[int], int]:
    """Where each property begins in a row with such list lengths, and the width of the row."""
    offsets, width = [], 0
    for item, length in zip(element.properties, lengths, strict=True):
        offsets.append(width)
        width += body.width(item.dtype) if item.count_dtype is None else body.width(item.count_dtype)
        width += length * body.width(item.dtype)
    return offsets, width


def _all_rows_alike(body: _Body, element: Element, lengths: list[int]) -> bool:
    """Whether every row has the same list lengths as the first one."""
    offsets, width = _offsets(body, element, lengths)
    if body.start + element.rows * width > body.size:
        return False
    for item, offset, length in zip(element.properties, offsets, lengths, strict=True):
        if item.count_dtype is not None:
            position = body.start + offset
            try:
                counts = body.block(position, element.rows, width, 1, item.count_dtype)
            except LoadError:  # in a text file of mixed lists, what is looked at need not be a length
                return False
            if (counts != length).any():
                return False
    return True


def _read_alike(body: _Body, element: Element, lengths: list[int]) -> tuple[dict[str, Column], int]:
    """The columns of an element whose rows all have the same width: strided views, no loop."""
    offsets, width = _offsets(body, element, lengths)
    columns: dict[str, Column] = {}
    for item, offset, length in zip(element.properties, offsets, lengths, strict=True):
        position = body.start + offset
        if item.count_dtype is None:
            columns[item.name] = body.block(position, element.rows, width, 1, item.dtype)[:, 0]
        else:
            position += body.width(item.count_dtype)
            values = body.block(position, element.rows, width, length, item.dtype)
            columns[item.name] = Ragged(values.reshape(-1), np.full(element.rows, length, np.int64))
    return columns, body.start + element.rows * width


def _read_mixed(body: _Body, element: Element) -> tuple[dict[str, Column], int]:
    """The columns of an element with lists of different lengths: a loop finds the lists, then all are read at once."""
    shape = (len(element.properties), element.rows)
    starts, lengths = np.empty(shape, np.int64), np.empty(shape, np.int64)
    position = body.start
    for row in range(element.rows):
        for k, item in enumerate(element.properties):
            starts[k, row] = position
            lengths[k, row], position = _step_over(body, element, item, position, row)
    columns: dict[str, Column] = {}
    for k, item in enumerate(element.properties):
        if item.count_dtype is None:
            columns[item.name] = body.gather(starts[k], item.dtype)
        else:
            first = starts[k] + body.width(item.count_dtype)
            within = positions_within(lengths[k])
            every = np.repeat(first, lengths[k]) + within * body.width(item.dtype)
            columns[item.name] = Ragged(body.gather(every, item.dtype), lengths[k])
    return columns, position


def positions_within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
