"""Readings from a socket, windows out as soon as they are complete."""

import json
import socket
import threading
from collections.abc import Iterator

import pyarrow as pa

import pystream as ps

SCHEMA = pa.schema([("ts", pa.int64()), ("meter", pa.string()), ("kwh", pa.float64())])
QUERY = ps.Query(ps.Window(size=10, advance=5), key="meter", aggregates={"n": ps.count(), "sum": ps.sum("kwh")})


def meter(port: int, name: str) -> None:
    """Stand in for a device: sends a JSON line every 4 seconds of its own time."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for i in range(5):
            connection.sendall(f"{json.dumps({'ts': 4 * i, 'meter': name, 'kwh': i / 2})}\n".encode())


def lines(connection: socket.socket) -> Iterator[dict[str, object]]:
    """The readings as they arrive."""
    with connection, connection.makefile("r") as text:
        for line in text:
            yield json.loads(line)


def feed(op: ps.Operator, index: int, connection: socket.socket) -> None:
    """Add what arrives, row by row or as many as there are; a closed connection closes the input."""
    for reading in lines(connection):
        op.add(index, pa.RecordBatch.from_pylist([reading], schema=SCHEMA))
    op.close(index)


with socket.create_server(("127.0.0.1", 0)) as server, ps.Operator(QUERY, inputs=2, schema=SCHEMA) as op:
    port = server.getsockname()[1]
    devices = [threading.Thread(target=meter, args=(port, name)) for name in ("attic", "cellar")]
    for device in devices:
        device.start()
    feeders = [threading.Thread(target=feed, args=(op, i, server.accept()[0])) for i in range(2)]
    for feeder in feeders:
        feeder.start()
    for batch in op:  # waits for the next complete window; ends when both inputs are closed
        for row in batch.to_pylist():
            print(f"{row['ts']:>2} {row['meter']:<6} n={row['n']} sum={row['sum']}")
    for thread in (*devices, *feeders):
        thread.join()

# Output:
#  0 attic  n=3 sum=1.5
#  0 cellar n=3 sum=1.5
#  5 attic  n=2 sum=2.5
#  5 cellar n=2 sum=2.5
# 10 attic  n=2 sum=3.5
# 10 cellar n=2 sum=3.5
# 15 attic  n=1 sum=2.0
# 15 cellar n=1 sum=2.0
