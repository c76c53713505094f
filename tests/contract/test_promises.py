"""Contract of stores, on every engine: the suite that other packages run on their stores, too."""

from esjobs.testing.aggregates import *
from esjobs.testing.filters import *
from esjobs.testing.lifecycle import *
from esjobs.testing.loads import *
from esjobs.testing.results import *
