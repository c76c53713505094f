"""The conditions of a view as people type them into the search bar of a server.

The same text is understood by Kibana (KQL) and by OpenSearch Dashboards (DQL).
"""

from collections.abc import Sequence

from dashboards.spec import JOBS, View, Where, table
from esjobs.core.words import ALL_TYPES


def kuery(view: View, method: str | None = None) -> str:
    """The rows of a view.

    >>> kuery(View("flags", where=(Where("confirmed", (True,)),), level="queue"), "gamma")
    'level: "queue" and method: "gamma" and processing_type: "all" and confirmed: true'
    """
    columns = set(table(view.table).column_names)
    fixed = {"level": view.level, "method": method}
    if view.types == "main" and view.table != JOBS.name:
        fixed["processing_type"] = ALL_TYPES
    said = [
        f"{name}: {_value(value)}" for name, value in fixed.items() if value is not None and name in columns
    ]
    return " and ".join([*said, *(condition(each) for each in view.where)])


def all_of(where: Sequence[Where]) -> str:
    """Every condition at once."""
    return " and ".join(condition(each) for each in where)


def condition(where: Where) -> str:
    """One condition.

    >>> condition(Where("component", (0, None))), condition(Where("verdict", ("ok",), negate=True))
    ('(component: 0 or not component: *)', 'not verdict: "ok"')
    """
    column = where.column
    if where.above is not None:
        said = f"({column} > {where.above} or {column} < {-where.above})"
        return said if not where.accepted else f"({said} and {condition(Where(column, where.accepted))})"
    if not where.accepted:
        return f"not {column}: *" if where.negate else f"{column}: *"
    values = [_value(value) for value in where.accepted if value is not None]
    listed = f"{column}: {values[0]}" if len(values) == 1 else f"{column}: ({' or '.join(values)})"
    if None in where.accepted:
        listed = f"({listed} or not {column}: *)"
    return f"not {listed}" if where.negate else listed


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
