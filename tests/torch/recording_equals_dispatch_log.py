"""recording_equals_dispatch_log.py WITH_SESSION: the trace that the hook records of a script says the same as an
independent log of it (dispatch_log.py), kernel by kernel and birth by birth.

The hook sees the outermost operators, the log those that autograd is left with, so each kernel is compared with the row of
logged operators that it consists of: kParts says which. What is born and dies within one kernel is not compared, since it
depends on how operators are made up inside.
"""

import os
import subprocess
import sys
import tempfile

from cases import HERE, SCRIPTS, long, main, normal, read_json

kParts = {
    "aten::conv2d": ["aten::convolution"],
    "aten::linear": ["aten::addmm"],
    "aten::batch_norm": ["aten::native_batch_norm"],
    "aten::cross_entropy_loss": ["aten::_log_softmax", "aten::nll_loss_forward"],
}
kIgnored = {"aten::item", "aten::_local_scalar_dense", "aten::empty", "aten::set_", "aten::randperm", "aten::random_"}


def is_kernel(entry):
    return "name" in entry and "view" not in entry and entry["name"] not in kIgnored and not entry["name"].startswith("profiler::")


def plain_iteration(entries, steps):
    """The logged operators of the shortest segment from the end of an iteration's last step to that of another (an
    evaluation makes it longer), and what dies after the last of them."""
    ends = [i for i, entry in enumerate(entries) if "step" in entry][steps - 1 :: steps]
    segments = list(zip(ends[1:], ends[2:-1]))  # not the first: it makes the optimizer's state; the last ends with the script
    length = min(end - begin for begin, end in segments)
    begin, end = next(segment for segment in segments if segment[1] - segment[0] == length)
    wanted = []
    for entry in entries[begin + 1 : end]:
        if is_kernel(entry):
            wanted.append(entry)
        elif wanted:
            wanted[-1].setdefault("dies", []).extend(entry.get("dies", []))
    after = end
    died_at_end = []
    while not is_kernel(entries[after]):
        died_at_end += entries[after].get("dies", [])
        after += 1
    return wanted, died_at_end


class Comparison:
    def __init__(self, trace, entries, died_at_end):
        self.trace, self.entries, self.died_at_end = trace, entries, died_at_end
        self.tensor_of, self.storage_of = {}, {}
        self.born = {}  # storage -> position of the kernel

    def fail(self, k, text):
        kernel = self.trace["kernels"][k]
        sys.exit(f"kernel {k} ({kernel['name']}, {kernel['phase']}): {text}")

    def same(self, k, tensor, storage):
        if self.tensor_of.setdefault(storage, tensor) != tensor or self.storage_of.setdefault(tensor, storage) != storage:
            # A carried tensor's second life is another storage.
            if self.trace["tensors"][tensor].get("carried_from") == tensor and storage in self.born:
                self.storage_of[tensor] = storage
                self.tensor_of[storage] = tensor
                return
            self.fail(k, f"tensor {tensor} is storage {self.storage_of.get(tensor)} and {storage}")

    def row(self, k, name):
        """The logged operators that the kernel consists of."""
        row = []
        for part in kParts.get(name, [name]):
            if not self.entries or self.entries[0]["name"] != part:
                self.fail(k, f"the log has {[entry['name'] for entry in self.entries[:3]]}, not {part}")
            row.append(self.entries.pop(0))
        return row

    def kernel(self, k):
        kernel, tensors = self.trace["kernels"][k], self.trace["tensors"]
        row = self.row(k, ".".join(kernel["name"].split(".")[:1]))
        made = {number: size for entry in row for number, size in entry["makes"]}
        died = {number for entry in row for number in entry.get("dies", [])}
        uses = [use for entry in row for use in entry["uses"] if use[0] not in made]
        accesses = [self.access(a, write) for write in (False, True) for a in kernel["writes" if write else "reads"]]
        # Python's scalars become tensors of 8 bytes above the log.
        frees = set(kernel["frees"])
        old = [a for a in accesses if not (tensors[a[0]]["kind"] == "input" and tensors[a[0]]["bytes"] == 8 and a[0] in frees)]
        self.compare_uses(k, uses, [a for a in old if not self.is_born_here(k, a)])
        born = [a for a in accesses if self.is_born_here(k, a) and not (a[0] in frees)]
        lasting = {number: size for number, size in made.items() if number not in died}
        if sorted(tensors[a[0]]["bytes"] for a in born) != sorted(lasting.values()):
            self.fail(k, f"makes {[tensors[a[0]]['bytes'] for a in born]}, the log has {list(lasting.values())}")
        self.pending = (born, lasting)
        for (tensor, *_), (number, _) in zip(
            sorted(born, key=lambda a: (tensors[a[0]]["bytes"], a[0])), sorted(lasting.items(), key=lambda item: (item[1], item[0]))
        ):
            self.candidates.setdefault(tensors[tensor]["bytes"], []).append((k, tensor, number))
            self.born[number] = k
        self.frees.append((k, frees, died - (made.keys() - lasting.keys())))

    def access(self, access, writes):
        if isinstance(access, int):
            return (access, 0, self.trace["tensors"][access]["bytes"], writes)
        return (access["tensor"], access.get("begin", 0), access.get("end"), writes)

    def is_born_here(self, k, access):
        return access[3] and self.first_write.get(access[0]) == k

    def compare_uses(self, k, uses, accesses):
        # A storage may be an argument more than once, and is written if any of them says so.
        logged = {(begin, end, writes) for _, begin, end, writes in uses}
        recorded = {a[1:3] for a in accesses}
        if {(begin, end) for begin, end, _ in logged} != recorded:
            self.fail(k, f"uses {sorted(recorded)}, the log has {sorted(logged)}")
        logged_writes = sorted(use[1:3] for use in {tuple(use) for use in uses} if use[3])
        recorded_writes = sorted(a[1:3] for a in set(accesses) if a[3])
        if logged_writes != recorded_writes:
            self.fail(k, f"writes {recorded_writes}, the log has {logged_writes}")
        if len({a[0] for a in accesses}) != len({use[0] for use in uses}):
            self.fail(k, f"uses {len({a[0] for a in accesses})} tensors, the log has {len({use[0] for use in uses})}")
        self.used.append((k, {a[0] for a in accesses}, {use[0] for use in uses}))

    def run(self):
        self.candidates, self.frees, self.used = {}, [], []
        self.first_write = {}
        seen = set()
        for k, kernel in enumerate(self.trace["kernels"]):
            for access in kernel["reads"]:
                seen.add(self.access(access, False)[0])
            for access in kernel["writes"]:
                tensor = self.access(access, True)[0]
                carried = self.trace["tensors"][tensor].get("carried_from")
                if tensor not in seen and not self.trace["tensors"][tensor].get("persistent") and carried in (None, tensor):
                    self.first_write[tensor] = k
                seen.add(tensor)
            # What the iteration before has left dies here, and is born again later.
            seen -= {tensor for tensor in kernel["frees"] if self.trace["tensors"][tensor].get("carried_from") == tensor}
        for k in range(len(self.trace["kernels"])):
            self.kernel(k)
        if self.entries:
            sys.exit(f"the log goes on with {[entry['name'] for entry in self.entries[:5]]}")
        self.compare_histories()

    def is_old_life(self, tensor, k):
        """Whether what dies here is what the iteration before has left."""
        carried = self.trace["tensors"][tensor].get("carried_from")
        return carried is not None and (carried != tensor or k < self.first_write.get(tensor, -1))

    def compare_histories(self):
        """Each tensor's uses, births and deaths are those of one storage, and the other way round."""
        last = len(self.trace["kernels"]) - 1
        tensors, storages = {}, {}
        for k, used, logged in self.used:
            for tensor in used:
                before = self.trace["tensors"][tensor].get("carried_from") == tensor and k < self.first_write.get(tensor, -1)
                tensors.setdefault(("old", tensor) if before else tensor, []).append(("use", k))
            for number in logged:
                storages.setdefault(number, []).append(("use", k))
        for rows in self.candidates.values():
            for k, tensor, number in rows:
                tensors.setdefault(tensor, []).append(("birth", k))
                storages.setdefault(number, []).append(("birth", k))
        for k, frees, died in self.frees:
            if k == last:
                died = died | set(self.died_at_end)
            for tensor in frees:
                if self.is_old_life(tensor, k):
                    tensors.setdefault(("old", tensor), []).append(("death", k))
                elif tensor in tensors:
                    tensors[tensor].append(("death", k))
            for number in died:
                storages.setdefault(number, []).append(("death", k))
        recorded, logged = sorted(map(sorted, tensors.values())), sorted(map(sorted, storages.values()))
        for history in recorded:
            if history in logged:
                logged.remove(history)
            else:
                sys.exit(f"a tensor with the history {history} is not in the log, which also has {logged[:5]}")
        if logged:
            sys.exit(f"the log has storages that the trace lacks: {logged[:5]}")


@normal("accumulation.py")
@long("two_optimizers.py", "2")
def the_same(with_session, script, steps="1"):
    with tempfile.TemporaryDirectory() as folder:
        log, trace = os.path.join(folder, "log.json"), os.path.join(folder, "x.trace")
        environment = dict(os.environ, LOG=log, OMP_NUM_THREADS="1")
        quiet = {"stdout": subprocess.DEVNULL, "env": environment, "check": True}
        path = os.path.join(SCRIPTS, script)
        subprocess.run([sys.executable, os.path.join(HERE, "dispatch_log.py"), path], **quiet)
        subprocess.run([with_session, trace, "0", "--", sys.executable, path], **quiet)
        entries, died_at_end = plain_iteration(read_json(log), int(steps))
        recorded = read_json(trace)
    print(f"{len(recorded['kernels'])} kernels against {len(entries)} logged operators")
    Comparison(recorded, entries, died_at_end).run()


main()
