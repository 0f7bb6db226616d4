"""Data types that every room shares, their JSON, units and errors, and how files beside the model are opened.

Glossary. Field terms (live range, eviction, LRU, stall, DMA, makespan, lower bound) have their usual meaning; these are
the words with a meaning of their own here.

What runs
    graph           what the model file says: operators and sized tensors (``Graph``)
    program         what the machine runs: scheduled steps over buffers (``Program``)
    step            one scheduled operation: an operator, or several that were fused
    buffer          storage of a tensor and of the views that share it
    tick, phase     a step is three ticks: READ, COMPUTE, WRITE
    payload         bytes of the tensor itself, without padding of channels and alignment
    use             a step that reads or writes a buffer
    held            kept until a step has run that does not read it: a branch that is not taken might
    workspace       memory that exists only within one step: an im2col matrix, accumulators
    body            graph inside of an If, Loop or Scan; unfolded: its steps are steps of the program

Memory
    target          the machine: SRAM, DRAM, compute units, DMA channels, energies
    fitted          a program with its memory: what is reserved, which operands are streamed
    reserved        SRAM taken off before buffers are placed; the rest is the pool
    staging         SRAM through which weights or streamed operands pass in tiles
    dedicated slot  reserved SRAM of one pinned buffer, which is never evicted
    oversized       an operator whose operands do not fit into the pool together
    streamed        of an operand: tiled through DRAM by an oversized step, never on-chip as a whole.
                    Of weights: read from DRAM by every step that uses them
    segment         ticks in which a buffer is on-chip at one address; reports call it a residency

Traffic
    compulsory      bytes that infinite SRAM would move too: inputs, weights, outputs, once each
    spill           gap between two uses that a buffer spends off-chip
    spill bytes     write-backs + reloads + streamed operands: all DRAM traffic that is not compulsory
    fetch           first read of an input from DRAM; compulsory
    reload          read of a spilled buffer from DRAM
    write-back      write of a buffer to DRAM that is still to be read
    drain           write of a graph output to DRAM; compulsory
    clean eviction  eviction of a buffer whose valid copy is in DRAM: nothing is written
    victim          buffer that a step evicts
    forced by       the step that needed the space
    move            compaction: a buffer changes its address inside SRAM
    oscillation     three or more spills of one buffer

Time
    job             anything but computing that takes time: a transfer, a stream, a move
    timeline        start and end of every step and job, in seconds
    serial cost     time of all spill transfers one after another, without overlap
    spill time      latency less that of the ideal
    ideal           the run with infinite SRAM
    cold, steady    first inference, or one of many: cached weights are on-chip from the run before

Findings
    strategy        rule that picks victims, or a planner of the whole run
    placement       rule that picks addresses
    kind            why the spilled bytes did not fit, from one plan: capacity, lifetime, fragmentation, oversized
    cause           what would have avoided them, by simulating again: capacity, order, policy, late release,
                    fragmentation
    ladder, rung    the counterfactual plans that causes are read from, each without one more cause
    certificate     weighted rows of integers that prove a lower bound on spill bytes
    gap             best spill bytes / lower bound - 1; in planning: the steps between two uses of a buffer
    what-if         one re-simulated change of machine, model or options; a suggestion if it helps
    story           answer to ``--why NAME``: all that happened to one tensor or operator
    profile         everything that one ``analyze`` found

Studies
    case            one model on one target with one set of options
    knee, cliff     a size of SRAM at which a curve flattens, or one below which it rises steeply
    entry           what a baseline remembers of one model on one target
    fingerprint     settings that shape figures and are not at their default; runs that differ in it do not compare
    revision        number of the simulator; figures of different revisions do not compare
"""
