"""The pages and an interface for programs over HTTP, read-only.

source   what is shown: a snapshot of the embedded store, or a cluster
answers  answers once per state, address and format: cached, one computation at a time
table    every address with its handler, parameters and readers
pages    handlers of pages for people
api      handlers of rows for programs; ``openapi`` describes them
shield   limits and headers around everything
app      all of it as one application; ``server`` listens, ``beside`` in a process beside the nights
"""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability("web", sections=(("web", Lazy("esjobs.flags.answering.settings:WebSettings")),))
