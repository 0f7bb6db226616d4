"""Literal Profiles for the report tests: plain arithmetic, shaped like a residual network."""

import math
from dataclasses import replace

from spillprof.ir.certificate import Certificate, CertificateRow
from spillprof.ir.graph import Assumption
from spillprof.ir.profile import Bounds, Profile, SizeCurve, SizePoint
from spillprof.ir.profile_facts import BufferFact, LiveBuffer, ModelFacts, ReservedBytes, StepFact, StreamedOperator
from spillprof.ir.result import (
    BufferCost,
    CauseBytes,
    Event,
    Ideal,
    KindBytes,
    OperatorCost,
    Oscillation,
    Residency,
    Result,
    RunTimes,
    SpillArc,
)
from spillprof.ir.story import Suggestion
from spillprof.ir.target import Target

MIB = 1 << 20
RESERVED = 2 * MIB
CAPACITY = 32 * MIB
STEP_S = 50e-6
BANDWIDTH = 60e9

HOSTILE_NAMES = (
    "</script><img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m\r\n\x07",
    "\u202egnp.exe\u2066",
    '=HYPERLINK("http://example.invalid","x")',
    "a|b`c`<b>d</b>*e*_f_[g](http://example.invalid)",
    "",
    "long/" + "x" * 10_000,
    "{{ 7*7 }}${7*7}%{x}&lt;b&gt;",
    "\u2028line\u2029para\udcff",
    "</style><script>alert(2)</script>",
)
"""Operator and buffer names that attack terminals, HTML, spreadsheets, Markdown and templates."""

SKIPS = (
    ("skip_0", int(4.8 * MIB)),
    ("skip_1", 1_310_720),
    ("skip_2", 1_310_784),
    ("skip_3", 1_250_000),
    ("skip_4", MIB),
)

REUSE = {"lru": 1, "size": 2, "belady": 4, "interval": 3}
"""Every how many of its reads a skip is off-chip: the strategies differ in nothing else here."""


def _step(i: int, name: str) -> StepFact:
    """Two convolutions, bound by their MACs and by their weights, then an addition."""
    macs, dram_bytes = (25_000_000, 0) if i % 3 == 0 else (2_500_000, 300_000) if i % 3 == 1 else (0, 0)
    return StepFact(
        name=name,
        op_type=("Conv", "Conv", "Add")[i % 3],
        macs=macs,
        sram_bytes=MIB,
        dram_bytes=dram_bytes,
        macs_per_sram_byte=macs / MIB,
        macs_per_dram_byte=macs / dram_bytes if dram_bytes else None,
        compute_s=(12e-6, 3e-6, 2e-6)[i % 3],
        dram_s=dram_bytes / BANDWIDTH,
        bound=("compute", "DRAM", "SRAM")[i % 3],
        algorithm=None if i % 3 == 2 else "direct",
    )


def make_profile(n_steps: int = 200, *, hostile: bool = True) -> Profile:
    """A profile of ``n_steps`` steps under five strategies, one of them infeasible."""
    names = [f"/stage{i // 3}/block/{('conv1', 'conv2', 'add')[i % 3]}" for i in range(n_steps)]
    if hostile:
        for k, name in enumerate(HOSTILE_NAMES):
            names[3 * k + 5] = name
    steps = tuple(_step(i, name) for i, name in enumerate(names))
    live = tuple(_map_bytes(i) + _map_bytes(i - 1) + sum(s for _, s in SKIPS) for i in range(n_steps))
    peak_step = live.index(max(live))
    results = [_result(strategy, period, steps) for strategy, period in REUSE.items()]
    results.insert(
        2,
        Result(
            strategy="cost",
            feasible=False,
            reason="step 41 needs 33.1 MiB at once: skip_0 is pinned and everything else is in use",
        ),
    )
    return Profile(
        spillprof_version="0.1.0",
        model=ModelFacts(
            path="models/residual_cnn.onnx",
            sha256="ab" * 32,
            name="residual_cnn",
            opset=17,
            operators=n_steps + 21,
            steps=n_steps,
            tensors=2 * n_steps + 50,
            weight_bytes=35_000_000,
            macs=5_100_000_000,
            peak_live_bytes=max(live),
            peak_step=peak_step,
            min_sram_bytes=26 * MIB + 64,
            min_sram_step=peak_step,
            dims={"batch": 1, "N<b>": 3},
            folded_operators=12,
            removed_operators=3,
            assumptions=(
                Assumption(what="operator Foo is elementwise", count=3),
                Assumption(what="string tensors take no memory", count=1),
            ),
            notes=("operators were not in topological order: sorted",),
        ),
        target=Target(
            name="generic-npu",
            sram_bytes=CAPACITY,
            alignment_bytes=64,
            channel_align=1,
            dram_read_bytes_per_s=BANDWIDTH,
            dram_write_bytes_per_s=BANDWIDTH,
            dram_read_setup_s=1e-6,
            dram_write_setup_s=1e-6,
            dram_burst_bytes=64,
            dram_read_curve=(),
            dram_write_curve=((0, 1e-6), (1024, 2e-6)),
            dram_bus_bytes_per_s=2 * BANDWIDTH,
            background_bytes_per_s=1e9,
            dram_outstanding=None,
            dma_read_channels=1,
            dma_write_channels=1,
            dma_shared_channels=0,
            sram_bytes_per_s=1e12,
            cores=1,
            clock_hz=1e9,
            macs_per_s={"default": 4e12, "int8": 8e12},
            utilisation={"default": 0.6, "depthwise": 0.05},
            array_rows=16,
            array_columns=16,
            vector_ops_per_s=5e11,
            conv_time_factors={"im2col": 1.5},
            launch_overhead_s=2e-6,
            sram_j_per_byte=1.6e-12,
            dram_read_j_per_byte=125e-12,
            dram_write_j_per_byte=125e-12,
            mac_j=1e-12,
            mac_j_by_dtype={"int8": 2.5e-13},
            sources={"dram_read_bytes_per_s": "one LPDDR5X channel pair"},
        ),
        reserved=ReservedBytes(
            runtime_bytes=0, weight_staging_bytes=RESERVED, stream_staging_bytes=0, shared_workspace_bytes=0,
            reserved_bytes=RESERVED,
        ),
        config={
            "weights": "stream", "placement": "best-fit", "oversized": "stream", "fuse": "standard", "conv": "direct",
            "inplace": True, "views": "share", "fold": True, "inputs": "on-demand", "writeback": "once",
            "release": "last-use", "dma": "prefetch", "pin": [], "strategies": [r.strategy for r in results],
        },
        steps=steps,
        live_bytes=live,
        peak_buffers=(
            LiveBuffer(name=f"map_{peak_step}", kind="activation", size_bytes=_map_bytes(peak_step),
                       start=peak_step, end=peak_step + 1, used_here=True),
            *(LiveBuffer(name=name, kind="activation", size_bytes=size, start=2, end=n_steps - 1, used_here=k == 0)
              for k, (name, size) in enumerate(SKIPS)),
        ),
        oversized=(
            StreamedOperator(step=9, name=names[9], demand_bytes=40 * MIB, streamed_bytes=30 * MIB,
                             beyond_bytes=18 * MIB, passes_bytes=2 * MIB, tiling="rows in 5 tiles of 12"),
        ),
        ideal=Ideal(
            latency_s=n_steps * STEP_S,
            energy_j=0.05,
            compulsory_read_bytes=36_000_000,
            compulsory_write_bytes=1_000_000,
            peak_bytes=44 * MIB,
        ),
        results=tuple(results),
        buffers=_buffers(n_steps),
        bounds=_bounds(results),
        suggestions=(
            Suggestion(change="pin", argument="--pin skip_0", strategy="lru", spill_bytes=420 * MIB,
                       latency_s=n_steps * STEP_S + 6e-3, energy_j=0.04, saves_s=5e-3, costs="4.8 MiB of SRAM"),
            Suggestion(change="sram", argument="--sram 48MB", strategy="interval", spill_bytes=0,
                       latency_s=n_steps * STEP_S, energy_j=0.03, saves_s=4.3e-3, costs="16 MiB more SRAM"),
        ),
        size_curve=_size_curve(),
        command="spillprof analyze models/residual_cnn.onnx --sram 32MB",
    )  # fmt: skip


def _size_curve() -> SizeCurve:
    """From a size in which nothing runs, over a knee at 28 MiB and a cliff at 36 MiB, to one that is enough."""
    spilled = {16: None, 24: 900, 28: 300, 32: 200, 36: 240, 40: 0, 44: 0}
    return SizeCurve(
        points=tuple(
            SizePoint(
                sram_bytes=size * MIB,
                strategy="interval",
                spill_bytes=None if mib is None else mib * MIB,
                latency_s=None if mib is None else 10e-3 + mib * 1e-5,
                spill_bytes_lower=None if mib is None else mib // 2 * MIB,
                reason="step 41 needs 20 MiB at once" if mib is None else None,
            )
            for size, mib in spilled.items()
        )
    )


def _bounds(results: list[Result]) -> Bounds:
    """A bound 16 MiB below the best strategy."""
    best = min(r.spill_bytes for r in results if r.feasible and r.strategy != "none")
    lower = best - 16 * MIB
    certificate = Certificate(
        spill_bytes_lower=lower, steps=3, capacity_bytes=32 * MIB, reserved_bytes=0, inputs_resident=False,
        steady_state=True, writes_always=False, scale=1 << 40,
        rows=(CertificateRow(step=1, weight=1 << 41, need_bytes=MIB, apart=("skip_0",), apart_after=(0,)),),
    )  # fmt: skip
    return Bounds(
        spill_bytes_lower=lower, spill_bytes_best=best, gap=best / lower - 1, proven_by="linear program",
        certified_bytes=lower, certified_by="linear program", serial_cost_s_lower=1e-3, certificate=certificate,
    )  # fmt: skip


def without_spills(profile: Profile) -> Profile:
    """The same model on a memory where nothing spills under any strategy."""
    results = tuple(
        Result(strategy=r.strategy, feasible=True, latency_s=profile.ideal.latency_s, energy_j=0.05,
               peak_bytes=44 * MIB, in_use_bytes=profile.live_bytes,
               causes=CauseBytes(capacity_bytes=0, order_bytes=0, policy_bytes=0, late_release_bytes=0,
                                 fragmentation_bytes=0),
               kinds=KindBytes(capacity_bytes=0, lifetime_bytes=0, fragmentation_bytes=0, oversized_bytes=0))
        for r in profile.results
    )  # fmt: skip
    target = replace(profile.target, sram_bytes=48 * MIB)
    nothing = "nothing must spill"
    bounds = Bounds(
        spill_bytes_lower=0, spill_bytes_best=0, gap=0.0, proven_by=nothing, certified_bytes=0, certified_by=nothing
    )
    return replace(profile, results=results, target=target, bounds=bounds, suggestions=(), oversized=())


def _buffers(n: int) -> tuple[BufferFact, ...]:
    """Step 2 writes all skips, every third step from the fifth reads one; each step reads the map before its own."""
    skips = tuple(
        BufferFact(name=name, kind="activation", size_bytes=size, written_by=2,
                   read_by=tuple(range(5 + 3 * k, n, 3 * len(SKIPS))))
        for k, (name, size) in enumerate(SKIPS)
    )  # fmt: skip
    maps = tuple(
        BufferFact(name=f"map_{i}", kind="input" if i == 0 else "activation", size_bytes=_map_bytes(i),
                   written_by=i or None, read_by=(i + 1,) if i + 1 < n else ())
        for i in range(n)
    )  # fmt: skip
    return skips + maps


def _map_bytes(i: int) -> int:
    """Bytes of the feature map that step ``i`` writes: 8 to 10 MiB, a multiple of 64."""
    return 8 * MIB + (i * 37 % 64) * (MIB // 32) if i >= 0 else 0


def _result(strategy: str, period: int, steps: tuple[StepFact, ...]) -> Result:
    """Skips are read in turn, one every third step; every ``period``-th read of each finds it off-chip."""
    n = len(steps)
    arcs, residencies, events, uses = [], [], [], {name: [] for name, _ in SKIPS}
    written: set[str] = set()
    address = RESERVED
    addresses = {}
    for name, size in SKIPS:
        addresses[name] = address
        address += -(-size // 64) * 64
    top = address
    since = {name: 2.0 for name, _ in SKIPS}
    spilled = {name: 0 for name, _ in SKIPS}
    forced: dict[int, list[tuple[str, int, int, int]]] = {}
    for turn, step in enumerate(range(5, n, 3)):
        name, size = SKIPS[turn % len(SKIPS)]
        last = uses[name][-1] if uses[name] else 2
        if (turn // len(SKIPS)) % period == 0 and step - last > 3:
            evict, write = last + 2, 0 if name in written else size
            written.add(name)
            spilled[name] += 1
            cause = "capacity" if turn % 7 else "fragmentation"
            arcs.append(SpillArc(buffer=name, size_bytes=size, last_use_step=last, evict_step=evict, needed_step=step,
                                 written=write > 0, reloaded=True, cause=cause,
                                 idle_s=(step - last - 1) * STEP_S, wait_s=size / BANDWIDTH / 2))  # fmt: skip
            residencies.append(Residency(buffer=name, kind="activation", start_step=since[name], end_step=float(evict),
                                         address=addresses[name], size_bytes=size))  # fmt: skip
            since[name] = step - 1.0
            forced.setdefault(evict, []).append((name, size, write, size))
            if write:
                events.append(Event(kind="write-back", buffer=name, size_bytes=size, step=last + 1, needed_step=evict,
                                    address=addresses[name], start_s=(last + 1) * STEP_S,
                                    end_s=(last + 1) * STEP_S + size / BANDWIDTH))  # fmt: skip
            events.append(Event(kind="reload", buffer=name, size_bytes=size, step=step - 1, needed_step=step,
                                address=addresses[name], start_s=(step - 1) * STEP_S,
                                end_s=(step - 1) * STEP_S + size / BANDWIDTH))  # fmt: skip
        uses[name].append(step)
    for name, size in SKIPS:
        residencies.append(Residency(buffer=name, kind="activation", start_step=since[name], end_step=float(n),
                                     address=addresses[name], size_bytes=size))  # fmt: skip
    for i in range(n):
        size = _map_bytes(i)
        place = top if i % 2 else CAPACITY - size
        residencies.append(Residency(buffer=f"map_{i}", kind="input" if i == 0 else "activation", start_step=i + 1 / 3,
                                     end_step=min(n, i + 1 + 2 / 3), address=place, size_bytes=size))  # fmt: skip
    in_use = [0] * (n + 1)
    for r in residencies:
        in_use[int(r.start_step)] += r.size_bytes
        in_use[min(n, math.ceil(r.end_step))] -= r.size_bytes
    residencies = [replace(r, start_s=r.start_step * STEP_S, end_s=r.end_step * STEP_S) for r in residencies]
    total, running = 0, []
    for delta in in_use[:n]:
        total += delta
        running.append(min(CAPACITY, RESERVED + total))
    operators = []
    for step, victims in forced.items():
        stall = sum(size for _, size, _, _ in victims) / BANDWIDTH / 2
        operators.append(OperatorCost(
            step=step, name=steps[step].name, op_type=steps[step].op_type,
            spill_write_bytes=sum(w for _, _, w, _ in victims), spill_read_bytes=sum(r for _, _, _, r in victims),
            streamed_bytes=30 * MIB if step == 9 else 0, stall_s=stall, stall_buffer=victims[0][0],
            cause="fragmentation" if step % 7 == 0 else "capacity",
            kind="fragmentation" if step % 7 == 0 else "capacity",
            victims=tuple(sorted((v[0] for v in victims), key=lambda v: -dict(SKIPS)[v])),
        ))  # fmt: skip
    if not any(o.step == 9 for o in operators):
        operators.append(OperatorCost(step=9, name=steps[9].name, op_type="Conv", spill_write_bytes=0,
                                      spill_read_bytes=0, streamed_bytes=30 * MIB, stall_s=0.0, stall_buffer=None,
                                      cause="capacity", kind="oversized", victims=()))  # fmt: skip
    operators.sort(key=lambda o: (-(o.spill_write_bytes + o.spill_read_bytes + o.streamed_bytes), o.step))
    writes = sum(o.spill_write_bytes for o in operators)
    reads = sum(o.spill_read_bytes for o in operators)
    serial = (writes + reads) / BANDWIDTH
    buffers = tuple(
        BufferCost(name=name, kind="activation", size_bytes=size, start=2, end=n - 1, uses=tuple(uses[name]),
                   spill_count=spilled[name], spill_bytes=size * (spilled[name] + (name in written)))
        for name, size in SKIPS
    )  # fmt: skip
    fragmentation = sum(a.size_bytes for a in arcs if a.cause == "fragmentation")
    return Result(
        strategy=strategy,
        feasible=True,
        spill_bytes=writes + reads + 30 * MIB,
        spill_write_bytes=writes,
        spill_read_bytes=reads,
        streamed_bytes=30 * MIB,
        spill_count=len(arcs),
        reload_count=len(arcs),
        clean_eviction_count=len(arcs) - sum(a.written for a in arcs),
        fragmentation_spill_bytes=fragmentation,
        peak_bytes=max(running),
        latency_s=n * STEP_S + serial / 2,
        spill_time_s=serial / 2,
        serial_cost_s=serial,
        hidden_share=0.5,
        energy_j=0.06,
        causes=CauseBytes(capacity_bytes=writes + reads - fragmentation + 30 * MIB - 2 * MIB, order_bytes=MIB,
                          policy_bytes=MIB, late_release_bytes=0, fragmentation_bytes=fragmentation),
        kinds=KindBytes(capacity_bytes=writes + reads - fragmentation, lifetime_bytes=0,
                        fragmentation_bytes=fragmentation, oversized_bytes=30 * MIB),
        operators=tuple(operators),
        buffers=buffers,
        oscillations=tuple(
            Oscillation(buffer=b.name, size_bytes=b.size_bytes, spill_count=b.spill_count, spill_bytes=b.spill_bytes,
                        pinned_spill_bytes=writes + reads - b.spill_bytes if k < 3 else None,
                        pinned_latency_s=n * STEP_S + serial / 2 - b.spill_bytes / BANDWIDTH / 2 if k < 3 else None)
            for k, b in enumerate(buffers) if b.spill_count >= 3
        ),
        in_use_bytes=tuple(running),
        arcs=tuple(arcs),
        residencies=tuple(sorted(residencies, key=lambda r: (r.start_step, r.address))),
        events=tuple(sorted(events, key=lambda e: e.start_s or 0.0)),
        times=_times(n),
    )  # fmt: skip


def _times(n: int) -> RunTimes:
    """One step after the other, nothing waited for, and a bus that reads every other step."""
    starts = tuple(i * STEP_S for i in range(n))
    return RunTimes(
        step_start_s=starts,
        step_end_s=tuple((i + 1) * STEP_S for i in range(n)),
        step_core=(0,) * n,
        stall_s=(0.0,) * n,
        stall_event=(-1,) * n,
        bus_time_s=starts,
        bus_read_bytes_per_s=tuple(BANDWIDTH * (i % 2) for i in range(n)),
        bus_write_bytes_per_s=(0.0,) * n,
        bus_background_bytes_per_s=(1e9,) * n,
    )
