"""Chart of speed factors against declared corepower, with its numbers in it."""

from typing import Any

import pyarrow as pa

from dashboards.targets.html.charts import line_chart


def drawn_line(flags: pa.Table, lines: pa.Table, limit: float) -> dict[str, Any]:
    """Vega-Lite specification of the chart; ``limit``: half-width of its band."""
    from esjobs.core.frames import frame_of

    spec: dict[str, Any] = line_chart(frame_of(flags), frame_of(lines), limit=limit)
    return spec
