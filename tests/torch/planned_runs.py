"""planned_runs.py SPILLWAY: a script with half the memory that it needs is planned for once an iteration has repeated itself, and
goes on with few page faults, with the results of a run that has all the memory; so does one that changes."""

import itertools
import os
import tempfile

from cases import EXAMPLES, SCRIPTS, check, half_of, long, main, normal, read_json, train


def with_half(spillway, policy, *script, memory=half_of):
    """The report of a run with half the memory that the script needs, or that part, and with the results of one that has all."""
    expected, unlimited = train(spillway, "4GiB", "uvm", *script)
    printed, report = train(spillway, memory(unlimited), policy, *script)
    check(printed == expected, printed, expected)
    return report


def check_costs(report, named=False):
    """Of each of the tensors that moved most, no more moved than of all, and no more was waited for than moved."""
    costs = report["most_moved_tensors"]
    moved = [cost["moved_bytes"] for cost in costs]
    check(len(costs) == 3 and moved == sorted(moved, reverse=True), costs)
    for cost in costs:
        check(0 < cost["bytes"] and 0 <= cost["waited_for_bytes"] <= cost["moved_bytes"], cost)
        check(cost["made_by"].startswith("aten::") and (cost["name"] is not None) == named, cost)
    check(sum(moved) <= sum(report["moved_bytes"].values()), costs, report["moved_bytes"])


def check_moves(report):
    """A planned iteration moves what its plan says, in and out, and at least what it must; but the first one comes from another state."""
    if report["plan"]["followed_since_iteration"] >= len(report["iterations"]):
        return
    for way in ("in", "out"):
        moved = report["iterations"][-1][f"moved_{way}_bytes"]
        predicted, least = report["plan"][f"predicted_{way}_bytes"], report["plan"][f"least_{way}_bytes"]
        check(least * 0.95 <= moved <= predicted * 1.1 + (8 << 20), way, moved, predicted, least)


@normal("auto", cpus=2)
@long("g10-once", "g10-clean", "furthest-ahead", "furthest-lean")
def a_steady_script(spillway, *policies):
    script = (EXAMPLES, "train_resnet.py", "--batch", "4", "--size", "96", "--steps", "8")
    expected, unlimited = train(spillway, "4GiB", "auto", *script)
    check(unlimited["plan"] is None and unlimited["faults"] == 0, "what fits was planned for", unlimited)
    check([phase["name"] for phase in unlimited["phases"]] == ["in memory"], unlimited["phases"])
    check(unlimited["advice"]["kind"] == "fits" and unlimited["most_moved_tensors"] == [], unlimited)
    printed, paging = train(spillway, half_of(unlimited), "uvm", *script)
    paged = paging["iterations"][-1]["faults"]
    check(printed == expected and paged > 50, printed, expected, paging)
    check([phase["name"] for phase in paging["phases"]] == ["demand paging"], paging["phases"])
    check(paging["advice"]["kind"] == "waits" and "uvm plans nothing" in paging["advice"]["sentence"], paging["advice"])
    check_costs(paging)
    for policy in policies:
        printed, report = train(spillway, half_of(unlimited), policy, *script)
        check(printed == expected, printed, expected)
        check(report["plan"] and report["plan"]["adopted_at_iteration"] <= 6, report)
        check(policy == "auto" or report["plan"]["policy"] == policy, report["plan"])
        check(report["iterations"][-1]["faults"] * 10 < paged, paged, report["iterations"])
        learning = ["learning"] if policy == "auto" else []
        check([phase["name"] for phase in report["phases"]] == ["demand paging", *learning, "planned"], report["phases"])
        check(report["peak_device_bytes"] <= report["device_budget_bytes"], report)
        check_moves(report)
        check(report["advice"]["kind"] == "waits", report["advice"])
        check_costs(report, named=True)
        print("ok", policy, "faults", [iteration["faults"] for iteration in report["iterations"]], flush=True)


@long()
def results_in_another_place_each_time(spillway):
    script = (SCRIPTS, "puts_down.py")
    expected, unlimited = train(spillway, "4GiB", "uvm", *script)
    paged = train(spillway, half_of(unlimited), "uvm", *script)[1]["iterations"][-1]["faults"]
    printed, report = train(spillway, half_of(unlimited), "g10-clean", *script)
    check(printed == expected, printed, expected)
    check(report["plan"] and report["plan"]["given_up_at_iteration"] is None, report["plan"])
    check(report["iterations"][-1]["faults"] * 10 < paged, paged, report["iterations"])
    print("ok results in another place each time, faults", report["iterations"][-1]["faults"], "of", paged, flush=True)


@long("auto")
@long("furthest-lean")
def tensors_that_are_replaced(spillway, policy):
    """No plan moves them, but what else moves was predicted with them."""
    report = with_half(spillway, policy, SCRIPTS, "averages.py")
    planned = report["iterations"][-1]["phase"] == "planned"
    check(planned or policy == "auto", report["iterations"])  # Which may find paging as good, or give its plan up.
    if planned:
        check_moves(report)


@long("160MiB", "64MiB")
def host_memory(spillway, *sizes):
    """No plan counts on what is taken there by what nobody uses, which has lain there since before the plan."""
    script = (SCRIPTS, "keeps_data.py")
    expected, unlimited = train(spillway, "4GiB", "uvm", *script)
    for host in sizes:
        with tempfile.TemporaryDirectory() as results:
            record = os.path.join(results, "record")
            printed, report = train(spillway, "128MiB", "furthest-ahead", *script, options=("--host-memory", host, "--record", record))
            to_host = [eviction for eviction in read_json(record, "blocks.plan")["evictions"] if eviction["to"] == "host"]
        check(printed == expected, printed, expected)
        moved, last = report["moved_bytes"], report["iterations"][-1]
        check(report["peak_host_bytes"] <= report["host_budget_bytes"], report)
        check(report["plan"] and last["phase"] == "planned" and last["faults"] < 10, report)
        check(moved["host_to_device"] > (200 << 20) if host == "160MiB" else not to_host, to_host, moved)
        check_moves(report)
        print("ok host memory of", host, moved, "faults", last["faults"], flush=True)


@normal()
def a_script_that_changes(spillway):
    report = with_half(spillway, "g10", SCRIPTS, "larger_batch.py", "24", "20", "9", "3072", "4096")
    faults = [iteration["faults"] for iteration in report["iterations"]]
    check(report["replans"] >= 1 and report["plan"]["followed_since_iteration"] > 12, report)  # The batch changes at the tenth.
    check(faults[10] > 10 > faults[-1], faults)
    print("ok another plan when the batch has changed, faults", faults, flush=True)


@normal()
def a_script_that_outgrows_its_memory(spillway):
    """While all fits operators are not watched, once the iteration is known; they are again when it takes more memory."""
    script = (SCRIPTS, "larger_batch.py", "16", "36", "18", "128", "2048")
    expected, unlimited = train(spillway, "4GiB", "auto", *script)
    printed, report = train(spillway, "48MiB", "auto", *script)
    operators = [iteration["operators"] for iteration in report["iterations"]]
    check(printed == expected, printed, expected)
    check(operators[5] > 0 and operators[16] == 0 and min(operators[20:]) > 0, operators)
    operators = [iteration["operators"] for iteration in unlimited["iterations"]]
    check(operators[17] == 0 and operators[18] > 0 and operators[-1] == 0, operators)
    check(report["peak_device_bytes"] <= report["device_budget_bytes"], report)
    check(report["iterations"][-1]["moved_in_bytes"] > 0, report["iterations"][-1])
    _, ended = train(spillway, "all", "auto", SCRIPTS, "larger_batch.py", "16", "19", "18", "128", "2048")
    check(len(ended["predictions"]) == 4, "the script has ended before it repeated itself again", ended)
    print("ok a script that outgrows its memory, operators without a limit", operators, flush=True)


@long()
def models_in_turns(spillway):
    """Whose turn it is their memory tells, and who is long overdue is no part of the next plan."""
    report = with_half(spillway, "g10", SCRIPTS, "takes_turns.py")
    iterations, rounds = report["iterations"], 8
    moved = [iteration["moved_in_bytes"] for iteration in iterations]
    check(iterations[rounds - 1]["planned_operators"] == iterations[rounds - 1]["operators"], iterations)
    check(max(moved[5:rounds]) * 5 < moved[2] * 6, moved)  # With the plan for another's turn it is half as much again.
    check(report["plan"]["optimizer_steps"] == 1 and moved[-1] * 3 < max(moved[rounds:]), report["plan"], moved)
    print("ok models in turns, and one alone, moved", moved, flush=True)


@long()
def scripts_that_never_settle(spillway):
    script = (EXAMPLES, "train_unsteady.py", "--steps", "8", "--batch", "4", "--layers", "4")
    expected, unlimited = train(spillway, "4GiB", "uvm", *script)
    faults = {}
    for policy in ("uvm", "deepum"):
        printed, report = train(spillway, half_of(unlimited), policy, *script)
        check(printed == expected, printed, expected)
        faults[policy] = [iteration["faults"] for iteration in report["iterations"]]
    check(sum(faults["deepum"][3:]) * 5 < sum(faults["uvm"][3:]), faults)
    print("ok what kernels use is learned though every step has another shape, faults", faults, flush=True)


@long()
@normal("numpy")
def frozen_weights(spillway, way=""):
    """What operators say they write, against the bytes: nothing of what they left unsaid has changed, unless through numpy."""
    report = with_half(spillway, "g10-clean", SCRIPTS, "frozen.py", *way.split())
    check(report["plan"]["policy"] == "g10-clean", report)
    check(way or report["clean_drops_bytes"] > 20 << 20, report["clean_drops_bytes"], report["moved_bytes"])
    check((report["unseen_writes"] > 0) == (way == "numpy"), report["unseen_writes"])
    print("ok frozen weights", way, report["clean_drops_bytes"], report["unseen_writes"], flush=True)


@normal("auto")
@long("deepum", "deepum-clean", "auto", "auto:numpy")
def inference(spillway, *ways):
    """No iteration is planned for, and what is only read is written once all the same, but under DeepUM as published."""
    written = {}
    for policy, *through in (way.split(":") for way in ways):
        report = with_half(spillway, policy, SCRIPTS, "infers.py", *through)
        check(report["plan"] is None, report["plan"])
        check((report["unseen_writes"] > 0) == bool(through), report["unseen_writes"])
        check((report["clean_drops_bytes"] > 0) == (policy != "deepum"), policy, report["clean_drops_bytes"])
        written.setdefault(policy, report["moved_bytes"]["device_to_ssd"])
    if "deepum" in written:
        check(max(written["auto"], written["deepum-clean"]) * 2 < written["deepum"], written)
    print("ok inference, written:", written, flush=True)


@long()
@long("zeroes")
def gradients_that_are_read_late(spillway, *way):
    """What leaves because it only waits to be freed comes back if the script wants it all the same."""
    script = (SCRIPTS, "late_gradients.py", *way)
    expected, unlimited = train(spillway, "4GiB", "uvm", *script)
    for policy in ("g10-clean", "furthest-ahead"):
        printed, report = train(spillway, half_of(unlimited), policy, *script)
        check(printed == expected, printed, expected)
        check(report["plan"]["policy"] == policy, report)
        faults = [iteration["faults"] for iteration in report["iterations"]]
        check(way or faults[10] > faults[7], "gradients did not leave", faults)  # Step 9 has read them.
        print("ok late gradients", policy, faults, flush=True)


@long()
def evaluations_of_the_same_shape(spillway):
    """They are no part of the planned iteration: the one after them is followed as any other."""
    report = with_half(spillway, "g10", SCRIPTS, "evaluates.py", memory=lambda all: f"{all['peak_device_bytes'] * 65 // 100 >> 20}MiB")
    faults = [iteration["faults"] for iteration in report["iterations"]]
    check(report["plan"]["adopted_at_iteration"] <= 7 and max(faults[7], faults[9]) < 10, faults)  # They come before these.
    print("ok evaluations of the same shape, faults", faults, flush=True)


@long()
@long("apart")
def a_plan_that_loses(spillway, *apart):
    """A plan under which iterations wait longer than before is given up, for good; also where every second iteration is another one."""
    report = with_half(spillway, "auto", SCRIPTS, "touches_beside.py", *apart)
    looked_at = report["iterations"][7::2] if apart else report["iterations"]
    names = [name for name, _ in itertools.groupby(iteration["phase"] for iteration in looked_at)]
    before = [] if apart else ["demand paging", "learning"]
    check(names == [*before, "planned", "learning"], names, report["iterations"])
    check(report["plan"]["given_up_because"] == "slower", report["plan"])


main()
