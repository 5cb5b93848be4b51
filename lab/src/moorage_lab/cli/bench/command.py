"""``moorage bench`` with all its commands."""

from __future__ import annotations

from moorage_lab.cli.bench.api import bench_api
from moorage_lab.cli.bench.churn import bench_churn
from moorage_lab.cli.bench.explain import explain
from moorage_lab.cli.bench.extender import bench_extender
from moorage_lab.cli.bench.groups import bench_gang_arrivals, bench_groups_complete
from moorage_lab.cli.bench.handover import handover
from moorage_lab.cli.bench.page import bench_page
from moorage_lab.cli.bench.path import bench_path
from moorage_lab.cli.bench.published.estimates import bench_estimates
from moorage_lab.cli.bench.published.fgd import bench_fgd
from moorage_lab.cli.bench.published.queues import bench_queues
from moorage_lab.cli.bench.questions import bench_questions
from moorage_lab.cli.bench.scheduler_perf import bench_scheduler_perf
from moorage_lab.cli.bench.sizes.growth import bench_growth
from moorage_lab.cli.bench.sizes.tails import bench_tails
from moorage_lab.cli.bench.soak import soak
from moorage_lab.cli.bench.start import bench_start
from moorage_lab.cli.bench.workloads import bench

__all__ = ["bench"]

for _benchmark in (
    soak,
    handover,
    explain,
    bench_api,
    bench_churn,
    bench_extender,
    bench_gang_arrivals,
    bench_groups_complete,
    bench_growth,
    bench_page,
    bench_path,
    bench_questions,
    bench_estimates,
    bench_queues,
    bench_scheduler_perf,
    bench_start,
    bench_tails,
    bench_fgd,
):
    bench.add_command(_benchmark)
