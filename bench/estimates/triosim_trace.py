#!/usr/bin/env python3
"""Makes a trace of TrioSim's published measurement of an H100, which bench/roofline reads: bench/estimates/triosim_trace.py FOLDER FILE.trace

FOLDER is one of sample_trace/trace2-h100-bs128/ in https://github.com/sarchlab/triosim (ResNet-50, VGG-13; batch 128). What is left out:
operators of which nothing is measured, and nodes of the backward pass that do nothing. Of a backward matrix product it has one factor only: its
operations are those of both gradients. Its tensors say nothing of who frees them: the trace is for its kernels' shapes and times only.
"""

import ast
import csv
import json
import math
import sys

BATCH = 128
NAMES = {
    "AddmmBackward0": "aten::mm",
    "ConvolutionBackward0": "aten::convolution_backward",
    "CudnnBatchNormBackward0": "aten::cudnn_batch_norm_backward",
    "ReluBackward0": "aten::threshold_backward",
    "MaxPool2DWithIndicesBackward0": "aten::max_pool2d_with_indices_backward",
    "AdaptiveAvgPool2DBackward0": "aten::_adaptive_avg_pool2d_backward",
    "LogSoftmaxBackward0": "aten::_log_softmax_backward_data",
    "NativeDropoutBackward0": "aten::native_dropout_backward",
    "NllLossBackward0": "aten::nll_loss_backward",
    "MeanBackward1": "aten::mean_backward",
}


def numbers(text):
    return [int(part) for part in text.strip("[]").split(";") if part.strip()]


def main():
    folder, output = sys.argv[1:]
    with open(f"{folder}/tensor.csv", encoding="utf-8") as file:
        known = {int(row["TensorID"]): (ast.literal_eval(row["TensorShape"]), int(row["TensorEachByte"])) for row in csv.DictReader(file)}
    ids, tensors, kernels, left_out = {}, [], [], 0.0

    def access(tensor):
        shape, item = known.get(tensor, ([], 0))
        size = math.prod(shape) * item
        if size == 0:
            return None
        if tensor not in ids:
            ids[tensor] = len(tensors)
            tensors.append({"id": ids[tensor], "name": f"tensor {tensor}", "bytes": size, "kind": "other", "persistent": True})
        return ids[tensor]

    with open(f"{folder}/trace.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["OperatorName"].removeprefix("autograd::engine::evaluate_function: ")
            microseconds = float(row["Operator_cudatimenooverlap"])
            inputs = numbers(row["Operator_input"])
            flops = 4 * BATCH * math.prod(known[inputs[0]][0]) if name == "AddmmBackward0" else None  # both gradients
            reads = [one for one in map(access, inputs) if one is not None]
            writes = [one for one in map(access, numbers(row["Operator_output"])) if one is not None]
            if microseconds == 0 or not name.startswith("aten::") and name not in NAMES or not reads:
                left_out += microseconds
                continue
            kernels.append({"name": NAMES.get(name, name), "phase": "other", "duration_ns": round(microseconds * 1000), "reads": reads,
                            "writes": writes, "shapes": [known[tensor][0] for tensor in inputs if tensor in known and known[tensor][0]], "flops": flops})
    trace = {"format": "spillway-trace", "version": 2, "name": folder.rstrip("/").rsplit("/", 1)[-1], "source": "triosim", "tensors": tensors,
             "kernels": kernels}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(trace, file)
    print(f"{output}: {len(kernels)} kernels of {sum(one['duration_ns'] for one in kernels) / 1e6:.1f} ms; {left_out / 1000:.1f} ms left out")


main()
