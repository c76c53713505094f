"""Words of a roofline, of the page and of a terminal."""

from esjobs.core.numbers import count, many
from esjobs.issues.roofline import Roofline
from esjobs.issues.rules.hints import formatted


def roofline_headline(roof: Roofline) -> str:
    """Intensity, operations per second of a node, share of the roof; empty without points."""
    if roof.intensity is None:
        return ""
    rate = f"{formatted(roof.mean_flops_s, 'flops')}{' per node' * (len(roof.nodes) > 1)}"
    share = f", {formatted(roof.roof_share_frac, 'percent')} of the roof ({roof.bound})" if roof.bound else ""
    return f"{roof.intensity:.3g} FLOP/B, {rate}{share}"


def peak_labels(roof: Roofline) -> list[str]:
    """Return the peaks of memory, of operations and of scalar ones; empty if not described."""
    part = roof.part
    rates = (part.peak_flops_s, ""), (part.peak_scalar_flops_s, " scalar")
    texts = [f"{formatted(peak, 'flops')}{word}" if peak else "" for peak, word in rates]
    return [formatted(part.peak_mem_bw_b_s, "rate") if part.peak_mem_bw_b_s else "", *texts]


def roofline_notes(roof: Roofline) -> str:
    """Return sentences about peaks, missing parts and what is uncertain."""
    if roof.shared:
        return "No roofline: the job shared its nodes, and memory traffic is of all jobs on a node."
    peaks = ", ".join(filter(None, peak_labels(roof)))
    unknown = "It is unknown if the job shared its nodes; memory traffic is of all jobs on a node."
    precision = "Operations are of any precision; ClusterCockpit's flops_any counts double precision twice."
    left_out = f"{count(roof.n_left_out)} of {count(roof.n_samples)} samples"
    notes = (
        (f"Peaks of a node: {peaks}.", peaks),
        ("Peaks of its nodes are not described (settings, section clusters): no roofs.", not peaks),
        ("The job is above the roof: the described peaks are too low.", (roof.roof_share_frac or 0) > 1),
        (unknown, roof.shared is None),
        (precision, roof.counters == ("flops_s",)),
        (f"Left out: {left_out}, without a counter or memory traffic.", roof.n_left_out),
        (f"{many(roof.n_idle, 'sample')} without operations.", roof.n_idle),
    )
    return " ".join(text for text, applies in notes if applies)
