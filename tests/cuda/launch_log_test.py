"""launch_log_test.py SHIM FAKE_DRIVER LOG: that bench/launches/launches.py reads what the shim reports."""
import ctypes
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/launches"))
from launches import KINDS, LaunchLog, driver_path  # noqa: E402


def within(path):
    log, driver, at = LaunchLog(path), ctypes.CDLL("libcuda.so.1"), 1 << 40
    assert log.add(at, 4096) and not log.add(at, 1)
    log.start()
    driver.cuMemcpyDtoD_v2(ctypes.c_uint64(at + 8), ctypes.c_uint64(at + 16), ctypes.c_size_t(4))
    driver.cuMemsetD8_v2(ctypes.c_uint64(1 << 41), 0, ctypes.c_size_t(4))
    driver.cuLaunchKernel(ctypes.c_void_p(0x123), 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(0x77), None, None)
    records = log.records()
    assert [KINDS[record.kind] for record in records] == ["copies", "sets", "kernels"]
    assert sorted(log.addresses()) == [at + 8, at + 16] and [record.addresses for record in records] == [2, 0, 0]
    assert (records[2].function, records[2].stream, records[2].is_complete) == (0x123, 0x77, 0) and log.name(records[2]) == "?"
    log.start()
    assert log.records() == [] and log.addresses() == []
    log.stop()
    driver.cuMemsetD8_v2(ctypes.c_uint64(at), 0, ctypes.c_size_t(4))
    assert log.records() == []
    print("ok")


def main():
    shim, fake, path = sys.argv[1:4]
    if sys.argv[4:] == ["within"]:
        return within(path)
    assert driver_path() is None or driver_path().startswith("/")
    environment = dict(os.environ, LD_PRELOAD=shim, SPILLWAY_CUDA_DRIVER=fake)
    return subprocess.run([sys.executable, __file__, shim, fake, path, "within"], env=environment, timeout=120).returncode


sys.exit(main())
