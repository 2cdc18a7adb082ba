"""A pipeline: messy CSV files, prepared and aggregated into parquet, by one file and one command."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

PIPELINE = """
engine = "local"              # "spark" gives the same rows, written by the executors into a folder
[source]
path = "raw/*.csv"
[prepare]
ts = "time"
tz = "Europe/Berlin"          # for times that do not say their zone
stream = "device"
require = ["value"]
[query]
window = "1s"
key = "device"
aggregates = { n = "count", mean = "mean:value", last = "last:value" }
[sink]
path = "rows.parquet"
"""

# Out of order, one twice, one without a value, one with a time that nobody can read, one in another zone.
READINGS = """time,device,value
2024-05-01 08:00:00.900,north,1.0
2024-05-01 08:00:00.100,north,1.0
2024-05-01 08:00:00.100,north,1.0
2024-05-01T06:00:01.250Z,north,4.0
2024-05-01 08:00:00.500,south,
soon,south,2.0
2024-05-01 08:00:00.250,south,7.0
"""

with TemporaryDirectory() as folder:
    Path(folder, "raw").mkdir()
    Path(folder, "raw", "monday.csv").write_text(READINGS)
    Path(folder, "messy.toml").write_text(PIPELINE)
    command = [sys.executable, "-m", "pystream", "pipeline", f"{folder}/messy.toml"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    print(said.split(";")[0])
    for row in pq.read_table(f"{folder}/rows.parquet").to_pylist():
        print(f"{row['ts']:%H:%M:%S} {row['device']} n={row['n']} mean={row['mean']} last={row['last']}")

# Output:
# messy: 1 files, 7 records, 3 rows dropped: 1 with unreadable timestamp, 1 without value, 1 twice
# 06:00:00 north n=2 mean=1.0 last=1.0
# 06:00:00 south n=1 mean=7.0 last=7.0
# 06:00:01 north n=1 mean=4.0 last=4.0
