"""Use by user in the columns of the utilisation report of AUDITOR, for a site to compare with its own."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core.window import Window
from esjobs.delivered.energy import energy
from esjobs.delivered.work import delivered
from esjobs.records.answer import Answer
from esjobs.store.base import JobStore

_COLUMNS = ("khs23h", "cpu_eff", "corehours", "power [kWh]", "co2 [kg]")


def utilisation(store: JobStore, window: Window | None, where: Sequence[str] = ()) -> Answer:
    """Return work, efficiency, energy and carbon by user, most core-hours first.

    ``khs23h``: by the declared score, HS06 and HS23 one to one. ``cpu_eff``: CPU hours over core-hours, of
    sums. Energy and carbon as :func:`esjobs.delivered.energy.energy` has them, with PUE; the plugin of
    AUDITOR (ALU-Schumacher/AUDITOR, plugins/utilization_report) has one power per core and no PUE. Null:
    unknown. Raises :class:`NoJobsError` without jobs.
    """
    work = delivered(store, ("user",), window, where, one_scale=True)
    used = energy(store, ("user",), window, where)
    of_user = {row["user"]: row for row in used.rows.to_pylist()}
    rows = []
    for row in work.rows.to_pylist():
        power = of_user.get(row["user"], {})
        core_h, cpu_h, declared_h = (row[name] for name in ("core_h", "cpu_core_h", "declared_h"))
        # their units: thousands of HS23-hours, kilograms
        grams = power.get("gco2e")
        rows.append(
            {
                "user": row["user"],
                "khs23h": None if declared_h is None else declared_h / 1000,
                "cpu_eff": cpu_h / core_h if core_h and cpu_h is not None else None,
                "corehours": core_h,
                "power [kWh]": power.get("energy_kwh"),
                "co2 [kg]": None if grams is None else grams / 1000,
            }
        )
    schema = pa.schema([("user", pa.string()), *((name, pa.float64()) for name in _COLUMNS)])
    notes = tuple(dict.fromkeys((*work.notes, *used.notes)))
    return Answer(
        pa.Table.from_pylist(rows, schema=schema), notes, title="use by user, as AUDITOR reports it"
    )
