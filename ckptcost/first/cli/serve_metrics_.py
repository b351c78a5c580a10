"""`ckptcost serve-metrics`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ckptcost.first.cli import flags

if TYPE_CHECKING:
    from ckptcost.first.exports.live_metrics import LiveSource

EPILOG = """\
examples:
  ckptcost serve-metrics last
  ckptcost serve-metrics 3f9a --port 9900
  ckptcost serve-metrics last --address 0.0.0.0   # for other machines
  ckptcost serve-metrics last --once -o /var/lib/node_exporter/ckptcost.prom
RUN is a folder or file, "last", or the beginning of an id or of a folder's
name: ckptcost runs lists them. It may be recorded still, or have ended.
GET /metrics is for Prometheus, /healthz tells whether the run can be read.
Joules are the meters' own, of all that the machine did: what checkpoints
cost, in dollars and kgCO2e too, is in the prometheus export of the run.
exit code 2: no such run, or the port cannot be listened on
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_name",
        metavar="RUN",
        help='a folder or file, "last" (of a job), or the beginning of an id',
    )
    flags.add_within(parser)
    parser.add_argument(
        "--port", type=int, metavar="N", help="listen there; 0: any that is free (default: 9877)"
    )
    parser.add_argument(
        "--address", metavar="IP", help="listen there (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="print the metrics and end, for node_exporter's textfile collector",
    )
    flags.add_output(parser, "--once: a file, which appears whole or not at all")


def run(options: argparse.Namespace) -> int:
    from ckptcost.first.errors import InputError
    from ckptcost.first.exports.live_metrics import LiveSource
    from ckptcost.first.runs.summary import one_of

    if options.once and (options.port is not None or options.address is not None):
        raise InputError(
            "nothing is listened on", where="--once", remedy="leave out --port and --address"
        )
    if options.output is not None and not options.once:
        raise InputError("belongs to --once", where="-o")
    found = flags.found_of(options)
    source = LiveSource(found.path, one_of(found.path, found.run).run)
    return _once(source, options.output) if options.once else _serve(source, options)


def _once(source: LiveSource, output: str | None) -> int:
    from ckptcost.first.cli.output import write
    from ckptcost.first.errors import RunFileError
    from ckptcost.first.exports.live_metrics import Unreadable, text

    try:
        samples = source.read().samples()
    except Unreadable as why:
        raise RunFileError(str(why), where=source.name) from None
    write([text(samples, "prometheus")], output)
    return 0


def _serve(source: LiveSource, options: argparse.Namespace) -> int:
    """Until somebody ends it: SIGTERM, by whoever keeps services, is no failure."""
    from ckptcost.first.exports.metrics_server import PORT, MetricsServer

    server = MetricsServer(
        source, options.address or "127.0.0.1", PORT if options.port is None else options.port
    )
    try:
        if not server.is_local:
            print(
                f"ckptcost: anybody who reaches port {server.server_port} of {options.address} can"
                " read this run, under any name",
                file=sys.stderr,
            )
        print(
            f"ckptcost: metrics of {source.name} are at {server.url}/metrics; Ctrl-C ends it",
            flush=True,
        )
        source.start()
        server.serve_forever()
    except SystemExit as ended:
        if ended.code != 128 + 15:
            raise
    finally:
        server.server_close()
        source.close()
    return 0
