"""recordings.py WITH_SESSION: what the hook records of the scripts beside this file."""

import collections
import os
import subprocess
import sys
import tempfile

from cases import SCRIPTS, check, long, main, normal, read_json


def run(with_session, script, *arguments, iteration=0):
    """The trace, or None, and what the hook said in the session."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.trace")
        command = [with_session, path, str(iteration), "--", sys.executable, os.path.join(SCRIPTS, script), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
        trace = read_json(path) if os.path.exists(path) else None
    said = collections.defaultdict(str, (line.partition(" ")[::2] for line in result.stderr.splitlines()))
    return trace, said


def names(trace):
    return [kernel["name"] for kernel in trace["kernels"]]


def kinds(trace):
    return collections.Counter(tensor["kind"] for tensor in trace["tensors"])


@normal()
def two_optimizers_are_one_iteration(with_session):
    trace, said = run(with_session, "two_optimizers.py")
    check(names(trace).count("aten::randn") == 2, names(trace))
    check(said["iterations"] == "5", said)
    check(kinds(trace)["weight"] == 8 and kinds(trace)["optimizer_state"] == 24, kinds(trace))


@long()
def steps_in_a_row_start_with_the_forward_pass(with_session):
    trace, _ = run(with_session, "steps_in_a_row.py")
    check(names(trace)[0] == "aten::randn" and kinds(trace)["gradient"] == 4, names(trace))


@normal()
def without_an_optimizer_a_backward_pass_ends_it(with_session):
    trace, said = run(with_session, "no_optimizer.py")
    check(trace["kernels"][-1]["phase"] == "backward" and "aten::sub_.Tensor" in names(trace), names(trace))
    check(said["iterations"] == "5", said)


@long()
def accumulation_by_hand_is_one_iteration(with_session):
    trace, _ = run(with_session, "accumulation_by_hand.py")
    check(names(trace).count("aten::randn") == 3 and names(trace).count("aten::sub_.Tensor") == 1, names(trace))


@long()
def optimizers_may_step_with_gradients_switched_on(with_session):
    trace, said = run(with_session, "optimizer_without_no_grad.py")
    check(kinds(trace)["weight"] == 4 and kinds(trace)["optimizer_state"] == 4, kinds(trace))
    phases = {kernel["name"]: kernel["phase"] for kernel in trace["kernels"]}
    check(phases["aten::mul.Tensor"] == phases["aten::sub_.Tensor"] == "optimizer", phases)
    check(said["iterations"] == "5", said)


@normal()
def a_closures_kernels_are_forward_and_backward(with_session):
    trace, _ = run(with_session, "closure.py")
    phases = {kernel["name"]: kernel["phase"] for kernel in trace["kernels"]}
    check(phases["aten::randn"] == phases["aten::abs"] == phases["aten::linear"] == "forward", phases)
    check(phases["aten::add_.Tensor"] == "optimizer", phases)


@long()
def an_old_optimizer_may_call_a_closure(with_session):
    trace, said = run(with_session, "old_closure.py")
    phases = {kernel["name"]: kernel["phase"] for kernel in trace["kernels"]}
    check(phases["aten::abs"] == "forward" and phases["aten::add_.Tensor"] == "optimizer", phases)
    check(kinds(trace)["weight"] == 4 and said["iterations"] == "6", (kinds(trace), said))


@long()
def steps_within_the_backward_pass_are_one(with_session):
    for beside in ([], ["beside"]):
        trace, said = run(with_session, "steps_in_backward.py", *beside)
        check(said["iterations"] == "6", said)
        check(names(trace).count("aten::linear") == 10 and kinds(trace)["optimizer_state"] == 20, kinds(trace))


@normal()
def recomputing_is_part_of_the_backward_pass(with_session):
    trace, _ = run(with_session, "checkpointing.py")
    phases = [kernel["phase"] for kernel in trace["kernels"] if kernel["name"] == "aten::linear"]
    check(phases == ["forward"] * 3 + ["backward"] * 3, phases)


@normal()
def embeddings_are_sparse_and_lstm_workspaces_are_written(with_session):
    trace, _ = run(with_session, "embedding_lstm.py")
    embedding = next(kernel for kernel in trace["kernels"] if kernel["name"] == "aten::embedding")
    check(embedding["reads"][0].get("sparse"), embedding)
    made = {tensor for kernel in trace["kernels"] if kernel["name"].startswith("aten::lstm") for tensor in kernel["writes"]}
    backward = [kernel for kernel in trace["kernels"] if kernel["name"] == "aten::mkldnn_rnn_layer_backward"]
    check(backward and all(made & set(kernel["writes"]) for kernel in backward), backward)


@normal()
def saving_in_between_is_no_part_of_it(with_session):
    trace, said = run(with_session, "saves_in_between.py")
    check(trace and names(trace)[0] == "aten::randn", said)
    check(not {"aten::t", "aten::detach", "aten::expand"} & set(names(trace)), names(trace))


@normal(cpus=2)
def threads_that_do_not_train_are_no_part_of_it(with_session):
    trace, said = run(with_session, "prefetching_thread.py")
    check(trace, said)
    check("aten::randn" not in names(trace) and names(trace).count("aten::linear") == 2, names(trace))
    check(trace["tensors"][trace["kernels"][0]["reads"][0]]["kind"] == "input", trace["kernels"][0])
    check(said["iterations"] == "12" and "threads that do not train" in said["notice"], said)


@long()
def a_thread_may_train_while_the_main_one_evaluates(with_session):
    trace, said = run(with_session, "trained_in_a_thread.py")
    check(trace and names(trace).count("aten::linear") == 2 and said["iterations"] == "30", said)


@long()
def a_part_of_an_accumulation_is_no_iteration(with_session):
    trace, said = run(with_session, "long_accumulation.py")
    check(trace is None and "recorded" not in said and "1 optimizer step" in said["not_recorded"], said)


@long()
def backward_passes_in_other_threads_end_iterations(with_session):
    trace, said = run(with_session, "backward_in_threads.py")
    check(trace["kernels"][-1]["phase"] == "backward" and "aten::sub_.Tensor" in names(trace), names(trace))


@normal()
def sparse_tensors_are_their_values_and_indices(with_session):
    trace, _ = run(with_session, "sparse_gradients.py")
    step = next(kernel for kernel in trace["kernels"] if kernel["phase"] == "optimizer")
    read = [trace["tensors"][tensor]["bytes"] for tensor in step["reads"] if isinstance(tensor, int)]
    check(64 * 16 * 4 in read and 64 * 8 in read, step)


@normal()
def what_wrappers_hold_is_seen(with_session):
    """The inner operators are the kernels: of tensor subclasses, and of vmap and grad."""
    trace, said = run(with_session, "wrappers.py")
    check(said["iterations"] == "6" and kinds(trace)["weight"] == kinds(trace)["optimizer_state"] == 2, (said, kinds(trace)))
    weights = {tensor for tensor, one in enumerate(trace["tensors"]) if one["kind"] == "weight"}
    for phase in ("forward", "optimizer"):
        read = {tensor for kernel in trace["kernels"] if kernel["phase"] == phase for tensor in kernel["reads"] if isinstance(tensor, int)}
        check(weights <= read, phase, trace["kernels"])
    by_sample = [tensor for tensor in trace["tensors"] if tensor["bytes"] == 8 * 64 * 64 * 4]
    check(by_sample, "vmap's gradients by sample", trace["tensors"])


@normal()
def workers_stay_unmanaged_and_the_last_batch_is_left_out(with_session):
    trace, said = run(with_session, "data_loader.py")
    check("aten::linear" in names(trace) and int(said["unmanaged_peak_bytes"]) > 0, said)
    check(said["iterations"] == "10" and int(said["unmanaged_processes"]) == 4, said)


@normal()
def changing_shapes_are_an_error_that_says_what_was_seen(with_session):
    trace, said = run(with_session, "changing_shapes.py")
    check(trace is None and "6 optimizer steps" in said["not_recorded"] and "aten::randn" in said["not_recorded"], said)
    trace, _ = run(with_session, "changing_shapes.py", iteration=2)
    check(trace["tensors"][trace["kernels"][0]["writes"][0]]["bytes"] == (4 + 2) * 16 * 4, trace["tensors"][0])


@long()
def out_of_memory_is_pytorchs_own_error(with_session):
    _, said = run(with_session, "out_of_memory.py")
    check("no optimizer step" in said["not_recorded"], said)


@normal()
def what_can_be_replayed_is_what_makes_the_same_anew(with_session):
    trace, _ = run(with_session, "replays.py")
    by_name = {kernel["name"]: kernel for kernel in trace["kernels"] if kernel["phase"] == "forward"}
    for name in ("aten::conv2d", "aten::exp", "aten::mean.dim", "aten::linear", "aten::sum"):
        check(by_name[name].get("replay") == {"omits": []}, by_name[name])
    for name in ("aten::randn", "aten::dropout", "aten::relu_"):
        check("replay" not in by_name[name], by_name[name])
    check(all("replay" not in kernel for kernel in trace["kernels"] if kernel["phase"] == "optimizer"), trace["kernels"])
    omits = by_name["aten::batch_norm"]["replay"]["omits"]
    check([trace["tensors"][tensor]["bytes"] for tensor in omits] == [8 * 4] * 2, omits, by_name["aten::batch_norm"])
    check(trace["version"] == 2, trace["version"])
    check(by_name["aten::conv2d"]["shapes"] == [[4, 3, 16, 16], [8, 3, 3, 3], [8]], by_name["aten::conv2d"])


@normal()
def what_reads_memory_of_others_is_not_replayed(with_session):
    trace, _ = run(with_session, "replays.py")
    kernel = next(kernel for kernel in trace["kernels"] if kernel["name"] == "aten::mul.Tensor" and kernel["phase"] == "forward")
    check("replay" not in kernel, kernel)


@long()
def copies_onto_themselves_touch_nothing(with_session):
    trace, _ = run(with_session, "onto_itself.py")
    copies = [bool(kernel["reads"] and kernel["writes"]) for kernel in trace["kernels"] if kernel["name"] == "aten::copy_"]
    check(copies == [False, True], trace["kernels"])


@normal()
def a_thread_that_waits_for_the_traces_disk_stops_no_other(with_session):
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "x.trace")
        os.mkfifo(pipe)
        command = [with_session, pipe, "0", "--", sys.executable, os.path.join(SCRIPTS, "computes_beside_a_stuck_disk.py"), pipe]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        check(done.returncode == 0 and done.stdout.splitlines() == ["full True", "{"], done.stdout, done.stderr)


main()
