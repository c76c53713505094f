"""The pages and an interface for programs over HTTP; what people enter goes into a journal.

source   what is shown: a snapshot of the embedded store, or a cluster
answers  answers once per state, address and format: cached, one computation at a time
table    every address with its method, handler, parameters and least role
access   readers and their roles; ``scope``: the store as a site sees it
acts     answers of sites and acknowledgements
pages    handlers of pages for people
forms    questions with one table as their answer
api      handlers of rows for programs; ``openapi`` describes them
shield   limits and headers around everything
app      all of it as one application; ``server`` listens, ``beside`` in a process beside the nights
"""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability("web", sections=(("web", Lazy("esjobs.flags.answering.settings:WebSettings")),))
