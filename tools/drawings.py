"""Read the numbers of a curve from a vector drawing that Matplotlib wrote as PDF, with the standard library alone.

Matplotlib draws the markers of a curve one after the other, each at a step from the last one, and prints these steps
with ten decimals. The ticks that carry a number give both axes. published/structural_curves.csv holds the curves of
bloom-176b, read from the drawings that the authors of `structural` released, by this command:

    python tools/drawings.py a=no_residual.pdf b=bloom.pdf c=bloom_content.pdf d=measured.pdf
"""

import re
import sys
import zlib
from pathlib import Path

NUMBER = r"(-?[\d.]+)"
MARKER = re.compile(rf"1 0 0 1 {NUMBER} {NUMBER} cm /M0 Do")
TICK = re.compile(rf"{NUMBER} {NUMBER} m\s+{NUMBER} {NUMBER} l\s+B\b|BT\s(.*?)\sET", re.DOTALL)
LETTERS = re.compile(r"\(((?:\\.|[^\\)])*)\)")


def page(pdf: bytes) -> str:
    """The drawing's own commands: the longest compressed stream of the file. Raises ValueError where there is none."""
    streams = []
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            streams.append(zlib.decompress(stream).decode("latin-1"))
        except zlib.error:
            continue  # a font or a picture
    if not streams:
        raise ValueError("the file has no compressed page: Matplotlib writes one unless pdf.compression is 0")
    return max(streams, key=len)


def labelled_ticks(commands: str) -> tuple[dict[float, float], dict[float, float]]:
    """Places, in points, of the ticks with a number, by this number: on the horizontal and on the vertical axis."""
    axes: tuple[dict[float, float], dict[float, float]] = ({}, {})
    place: tuple[int, float] | None = None
    for left, bottom, right, top, text in TICK.findall(commands):
        if not text:
            place = (0, float(left)) if left == right else (1, float(bottom)) if bottom == top else None
            continue
        label = "".join(LETTERS.findall(text)).replace("\\", "")
        if place and re.fullmatch(r"-?[\d.]+", label):
            axes[place[0]][float(label)] = place[1]
        place = None
    return axes


def scaled(places: list[float], ticks: dict[float, float]) -> list[float]:
    """Numbers of places on an axis, from its two outermost labelled ticks. Raises ValueError where it has fewer."""
    if len(ticks) < 2:
        raise ValueError(f"an axis needs two ticks with numbers, and has {len(ticks)}")
    low, high = min(ticks), max(ticks)
    points = (high - low) / (ticks[high] - ticks[low])
    return [low + (place - ticks[low]) * points for place in places]


def curve(pdf: bytes) -> tuple[list[float], list[float]]:
    """Horizontal and vertical numbers of the markers of the first curve with markers. Raises ValueError without any."""
    commands = page(pdf)
    steps = [(float(right), float(up)) for right, up in MARKER.findall(commands)]
    if not steps:
        raise ValueError("the drawing has no markers")
    places = [[sum(step[axis] for step in steps[: count + 1]) for count in range(len(steps))] for axis in (0, 1)]
    horizontal, vertical = labelled_ticks(commands)
    return scaled(places[0], horizontal), scaled(places[1], vertical)


if __name__ == "__main__":
    print("variant,token,share")
    for variant, file in (argument.split("=", 1) for argument in sys.argv[1:]):
        tokens, shares = curve(Path(file).read_bytes())
        for token, share in zip(tokens, shares, strict=True):
            print(f"{variant},{round(token) + 1},{share:.10f}")
