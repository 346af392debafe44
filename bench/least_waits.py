#!/usr/bin/env python3
"""How long the kernels of a recorded iteration must wait at the very least, whatever is planned.

  bench/least_waits.py DIR [--slots 300]

DIR is what `spillway run --record DIR` wrote: its blocks.trace is the iteration, and its blocks.plan says with how much memory and with
which rates of its one SSD it was planned for. Needs numpy and highspy (pip install numpy highspy); takes a minute or two.

A linear program. The iteration is a circle of instants, each in the middle of a kernel, and the slots of time between them, each as long as
its kernels take and as they wait in it. At an instant what its kernel uses is on the device, of all else any part may be, and together they
fit. In a slot any part of what is alive may leave and come, no more than the links carry in that time; what is used in it has come by its end
and leaves after its beginning. Bytes that have been stored since they were last written leave without a copy. No plan as it is simulated
waits less: none can order moves more finely than into fractions of bytes, and within a slot their order does not count. (A run may, a
little: it has the room that was kept free for small and replaced tensors, too.) Accesses that are sparse or of a part of a tensor ask for
nothing."""

import argparse
import json
import os
import sys

import highspy
import numpy

SPARE = 8 * (2 << 20)  # what the simulated executor may use beyond a plan's memory
INFINITE = highspy.kHighsInf


class Program:
    """Columns and rows of a linear program."""

    def __init__(self):
        self.costs, self.uppers, self.lows, self.highs, self.starts, self.columns, self.values = [], [], [], [], [0], [], []

    def column(self, upper, cost=0.0):
        self.costs.append(cost)
        self.uppers.append(upper)
        return len(self.costs) - 1

    def row(self, low, high, terms):
        self.lows.append(low)
        self.highs.append(high)
        for column, value in terms:
            self.columns.append(column)
            self.values.append(value)
        self.starts.append(len(self.columns))

    def least(self):
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self.costs), len(self.lows)
        program.col_cost_, program.col_lower_ = numpy.array(self.costs), numpy.zeros(len(self.costs))
        program.col_upper_ = numpy.array(self.uppers, dtype=float)
        program.row_lower_, program.row_upper_ = numpy.array(self.lows, dtype=float), numpy.array(self.highs, dtype=float)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = numpy.array(self.starts)
        program.a_matrix_.index_, program.a_matrix_.value_ = numpy.array(self.columns), numpy.array(self.values, dtype=float)
        solver = highspy.Highs()
        solver.silent()
        solver.setOptionValue("solver", "ipm")
        solver.setOptionValue("run_crossover", "off")
        solver.passModel(program)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            sys.exit(f"error: the linear program has no solution ({solver.modelStatusToString(solver.getModelStatus())}): a kernel may need "
                     "more than the memory, and would run by faults")
        return solver.getInfo().objective_function_value


def accesses_of(kernel):
    """As (tensor, range or None for all of it, whether it is written)."""
    for kind, is_write in (("reads", False), ("writes", True)):
        for access in kernel[kind]:
            yield (access, None, is_write) if isinstance(access, int) else (access["tensor"], access, is_write)


def is_whole(access, size):
    return access is None or (not access.get("sparse") and access["begin"] == 0 and access["end"] == size)


class Iteration:
    """By tensor, at which kernels it is used and written as a whole, and between which it lives."""

    def __init__(self, trace):
        self.tensors, self.kernels = trace["tensors"], trace["kernels"]
        count = len(self.tensors)
        self.uses, self.writes = [set() for _ in range(count)], [set() for _ in range(count)]
        self.touched = [set() for _ in range(count)]
        self.freed = [None] * count
        for place, kernel in enumerate(self.kernels):
            for tensor, access, is_write in accesses_of(kernel):
                self.touched[tensor].add(place)
                if is_whole(access, self.tensors[tensor]["bytes"]):
                    self.uses[tensor].add(place)
                    if is_write:
                        self.writes[tensor].add(place)
            for tensor in kernel["frees"]:
                self.freed[tensor] = place
        self.durations = [kernel["duration_ns"] / 1e9 for kernel in self.kernels]
        self.seconds = [(kernel["duration_ns"] + kernel.get("gap_ns", 0)) / 1e9 for kernel in self.kernels]

    def life(self, tensor):
        """The kernels that it lives at, from its first whole use on, some maybe beyond the iteration's end; None: all."""
        freed = self.freed[tensor]
        if freed is None:
            return None
        if self.tensors[tensor].get("carried_from") is None:
            return range(min(self.uses[tensor]), freed + 1)
        return range(min((place for place in self.uses[tensor] if place > freed), default=freed), freed + len(self.kernels) + 1)

    def instants(self, slots):
        """Kernels, so that between two of them about as much time passes and about as many bytes begin to be used."""
        begun = [0] * len(self.kernels)
        for tensor, places in enumerate(self.touched):
            last = None
            for place in sorted(places):
                if last is None or place > last + 1:
                    begun[place] += self.tensors[tensor]["bytes"]
                last = place
        weights = numpy.array(self.seconds) / sum(self.seconds) + numpy.array(begun) / max(1, sum(begun))
        sums = numpy.cumsum(weights)
        return sorted({int(numpy.searchsorted(sums, sums[-1] * (slot + 0.5) / slots)) for slot in range(slots)})


def least_waits(iteration, device, rate_in, rate_out, slots):
    program, unit = Program(), 2 << 20
    instants = iteration.instants(slots)
    count, kernels = len(instants), len(iteration.kernels)
    waits = [program.column(INFINITE, 1.0) for _ in instants]
    starts = numpy.concatenate([[0.0], numpy.cumsum(iteration.seconds)])
    middles = [starts[kernel + 1] - iteration.durations[kernel] / 2 for kernel in instants]
    lengths = [(middles[(slot + 1) % count] - middles[slot]) % starts[-1] for slot in range(count)]
    here, fixed = [[] for _ in instants], [0.0] * count
    ins, outs = [[] for _ in instants], [[] for _ in instants]
    place_of = {kernel: slot for slot, kernel in enumerate(instants)}
    slot_of = [int(numpy.searchsorted(instants, kernel, side="right") - 1) % count for kernel in range(kernels)]

    for tensor, description in enumerate(iteration.tensors):
        if not iteration.uses[tensor]:
            continue
        size = description["bytes"] / unit
        at = {place_of[kernel] for kernel in iteration.uses[tensor] if kernel in place_of}
        within = {slot_of[kernel] for kernel in iteration.uses[tensor] if kernel not in place_of}
        written_at = {place_of[kernel] for kernel in iteration.writes[tensor] if kernel in place_of}
        written_within = {slot_of[kernel] for kernel in iteration.writes[tensor] if kernel not in place_of}
        life = iteration.life(tensor)
        closing = None  # what leaves in the last slot of the circle after a write in it, long before it is written again
        if life is None:  # Once around, from a write on, if there is one.
            first = min(written_at, default=None)
            if first is None and written_within:
                first = (min(written_within) + 1) % count
                closing = program.column(INFINITE)
            steps = [((first or 0) + step) % count for step in range(count)]
        else:
            alive = [kernel for kernel in life if kernel % kernels in place_of]
            steps = [place_of[kernel % kernels] for kernel in alive]
            used = {kernel % kernels for kernel in range(alive[0], life[-1] + 1)} & iteration.uses[tensor] if alive else set()
            within = {slot_of[kernel] for kernel in used if kernel not in place_of}  # Not what was used before the first step.
            written_within = {slot_of[kernel] for kernel in used & iteration.writes[tensor] if kernel not in place_of}
        if not steps:
            continue
        parts = {slot: None if slot in at else program.column(size) for slot in steps}
        for slot, part in parts.items():
            if part is None:
                fixed[slot] += size
            else:
                here[slot].append((part, 1.0))

        stored = None if not (written_at or written_within) else []  # columns of what has left since the last write; None: all has
        leaving, dropping = [] if closing is None else [closing], []  # in this period

        def begin_period(is_write):
            nonlocal stored
            if dropping and stored is not None:
                program.row(-INFINITE, 0.0, [(column, 1.0) for column in dropping] + [(column, -1.0) for column in stored])
            if stored is not None:
                stored = [] if is_write else stored + leaving
            leaving.clear()
            dropping.clear()

        for step, slot in enumerate(steps):
            if slot in at:
                begin_period(slot in written_at)
            after = steps[(step + 1) % len(steps)] if life is None or step + 1 < len(steps) else None
            part, rest = parts[slot], parts[after] if after is not None else None
            if stored is None and part is None and after is not None and rest is None:
                continue  # It is needed before and after, and need not be stored.
            comes = program.column(INFINITE)
            ins[slot].append((comes, 1.0))
            before = [] if part is None else [(part, 1.0)]
            held = size if part is None else 0.0
            if slot in within:
                program.row(size - held, INFINITE, before + [(comes, 1.0)])
                begin_period(slot in written_within)
            if after is None:
                continue  # It dies in this slot.
            terms = before + [(comes, 1.0)] + ([(rest, -1.0)] if rest is not None else [])
            if stored is None or stored:
                dropping.append(program.column(size))
                terms.append((dropping[-1], -1.0))
            if stored is not None:
                leaving.append(closing if closing is not None and step + 1 == count else program.column(INFINITE))
                outs[slot].append((leaving[-1], 1.0))
                terms.append((leaving[-1], -1.0))
            now = (size if rest is None else 0.0) - held
            program.row(now, now, terms)
        begin_period(False)

    for slot in range(count):
        program.row(-INFINITE, device / unit - fixed[slot], here[slot])
        for moves, rate in ((ins[slot], rate_in), (outs[slot], rate_out)):
            program.row(-INFINITE, lengths[slot] * rate / unit, moves + [(waits[slot], -rate / unit)])
    return program.least(), count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--slots", type=int, default=300, help="instants in the iteration: more of them, more waits are found (default: 300)")
    options = parser.parse_args()
    if options.slots < 2:
        parser.error("--slots: at least 2")
    with open(os.path.join(options.folder, "blocks.trace"), encoding="utf-8") as file:
        trace = json.load(file)
    with open(os.path.join(options.folder, "blocks.plan"), encoding="utf-8") as file:
        plan = json.load(file)
    machine = dict(override.split("=") for override in plan["machine"]["overrides"])
    if int(machine.get("host.memory", 0)) > 0:
        sys.exit("error: the run had host memory, of which this knows nothing")
    iteration = Iteration(trace)
    kernels = sum(iteration.seconds)
    least, instants = least_waits(iteration, int(machine["device.memory"]) + SPARE, int(machine["ssd.read"]), int(machine["ssd.write"]),
                                  options.slots)
    print(f"kernels take             {kernels:8.3f} s")
    print(f"waits at least           {least:8.3f} s   ({instants} instants)")
    print(f"the plan is predicted to {plan['predicted_seconds']:8.3f} s, and to wait {plan['predicted_seconds'] - kernels:.3f} s "
          f"({plan['policy']}): the least is {(kernels + least) / plan['predicted_seconds']:.1%} of that")


if __name__ == "__main__":
    main()
