"""Contract of sources, on formats of ours: the suite that other packages run on theirs, too."""

import base64
import gzip
import json
from pathlib import Path

import pytest

from esjobs.records.ingest.base import Source
from esjobs.records.ingest.formats import sources
from esjobs.testing.sources import *

SUMMARY = base64.b64encode(gzip.compress(b'{"nodes":{"n1":{"cpus":8}},"total_time":60,"gpus":0}')).decode()
SWF = "; UnixStartTime: 1132444805\n1 0 5 100 4 50 -1 4 100 -1 1 1 1 1 7 1 -1 -1\n"
PANDA = [{"pandaid": number, "computingsite": "A", "endtime": "2018-08-15"} for number in (1, 2)]
SAMPLES = {
    "panda": ("jobs.jsonl", "".join(json.dumps(record) + "\n" for record in PANDA)),
    "jobs": ("jobs.csv", "job_id,queue,end_time,user\n1,A,2018-08-15,ada\n2,A,2018-08-15,\n"),
    "slurm": (
        "sacct.txt",
        "JobID|Partition|End|User|State|AdminComment\n"
        f"1|batch|2018-08-15T12:00:00|ada|COMPLETED|JS1:{SUMMARY}\n",
    ),
    "swf": ("jobs.swf", SWF),
    "cms-htcondor": (
        "jobs.csv",
        "GlobalJobId,Site,RecordTime,User,Status\n1,T2_A,1534334400,ada,Completed\n",
    ),
    "corepower": ("corepower.csv", "queue,corepower,benchmark\nA,10,HS06\nB,12.5,HS06\n"),
}


@pytest.fixture(params=SAMPLES)
def source(request: pytest.FixtureRequest) -> Source:
    return sources.source(request.param)


@pytest.fixture
def sample(source: Source, tmp_path: Path) -> Path:
    name, text = SAMPLES[source.name]
    (tmp_path / name).write_text(text)
    return tmp_path / name
