"""Jobs that behave similarly, from their time series."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "similar",
    sections=(("similar", Lazy("esjobs.similar.settings:SimilarSettings")),),
    offers={
        "similar.nightly_inputs": Lazy("esjobs.similar.night:nightly_inputs"),
        "similar.predict_nightly": Lazy("esjobs.similar.night:predict_nightly"),
    },
    facade=Lazy("esjobs.similar.facade:Similar"),
)
