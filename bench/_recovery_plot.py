"""The picture of the recovery benchmark: RQ of every contender in every scenario, as one SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from recovery import Results

__all__ = ("draw",)

_LEFT, _TOP, _CELL, _ROW, _BAR = 190, 150, 46, 18, 210
_OURS, _THEIRS, _TEXT, _FAINT = "#1d4ed8", "#9aa5b1", "#1f2933", "#52606d"


def draw(results: Results, file: Path) -> None:
    """Write the picture of `results` to `file`."""
    file.write_text(_svg(results), encoding="utf-8")


def _svg(results: Results) -> str:
    order = sorted(results.contenders, key=results.mean, reverse=True)
    plain = [name for name in order if not name.endswith(", patient")]
    bars = _bars(results, order)
    top = 70 + 20 * len(order) + _TOP
    width = _LEFT + _CELL * len(plain) + 30
    height = top + _ROW * len(results.scenarios) + 30
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    fonts = "DejaVu Sans, Helvetica, Arial, sans-serif"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{fonts}" fill="{_TEXT}">',
            "<title>Recovery quality</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            _text(16, 26, "How close to the limit: recovery quality (RQ)", size=15, bold=True),
            _text(
                16,
                44,
                f"Geometric mean over {len(results.scenarios)} scenarios; 100 is the best that any "
                "client could do. Patient: told not to give up.",
            ),
            *bars,
            *_matrix(results, plain, top),
            "</svg>\n",
        ]
    )


def _bars(results: Results, order: list[str]) -> list[str]:
    parts = []
    for at, name in enumerate(order):
        y, mean = 64 + 20 * at, results.mean(name)
        is_ours = name.startswith("Mulligan")
        parts.append(_text(_LEFT - 8, y + 12, name, anchor="end", bold=is_ours))
        parts.append(
            f'<rect x="{_LEFT}" y="{y + 1}" width="{max(1.0, mean / 100 * _BAR * 1.6):.1f}" '
            f'height="14" fill="{_OURS if is_ours else _THEIRS}"/>'
        )
        x = _LEFT + mean / 100 * _BAR * 1.6 + 6
        parts.append(_text(x, y + 12, f"{mean:.0f}", bold=is_ours))
    return parts


def _matrix(results: Results, plain: list[str], top: float) -> list[str]:
    parts = []
    for at, name in enumerate(plain):
        x = _LEFT + _CELL * (at + 0.5)
        parts.append(
            f'<text transform="translate({x + 4:.1f},{top - 8}) rotate(-45)" font-size="11" '
            f"{'font-weight=' + chr(34) + 'bold' + chr(34) if name == 'Mulligan' else ''}>"
            f"{escape(name)}</text>"
        )
    for row, scenario in enumerate(results.scenarios):
        y = top + _ROW * row
        parts.append(_text(_LEFT - 8, y + 13, scenario, anchor="end"))
        for at, name in enumerate(plain):
            quality = results.quality(name, scenario)
            x = _LEFT + _CELL * at
            parts.append(
                f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{_ROW - 1}" '
                f'fill="{_shade(quality)}"/>'
            )
            colour = "white" if quality > 55 else _TEXT
            parts.append(
                _text(x + _CELL / 2, y + 13, f"{quality:.0f}", anchor="middle", colour=colour)
            )
    return parts


def _shade(quality: float) -> str:
    """From nearly white to blue."""
    share = min(max(quality / 100, 0.0), 1.0)
    low, high = (244, 246, 248), (29, 78, 216)
    mixed = [round(a + (b - a) * share) for a, b in zip(low, high, strict=True)]
    return "#" + "".join(f"{each:02x}" for each in mixed)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 11,
    bold: bool = False,
    anchor: str = "start",
    colour: str = "",
) -> str:
    style = (' font-weight="bold"' if bold else "") + (f' fill="{colour}"' if colour else "")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{style}>'
        f"{escape(text)}</text>"
    )
