"""cudart_test.py SHIM FAKE_DRIVER: that NVIDIA's runtime library, as pip installs it, finds the shim and resolves launches through it.

Without a device it comes no further: after its functions it asks for tables that nobody documents.
"""
import ctypes
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

GATED = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch", "cuMemcpyAsync", "cuMemcpyHtoDAsync",
         "cuMemcpyBatchAsync", "cuMemsetD8Async", "cuGraphInstantiate", "cuStreamBeginCapture")


def within(shim, fake):
    """In a process with the shim preloaded."""
    found = importlib.util.find_spec("nvidia")
    libraries = [library for folder in (found.submodule_search_locations if found else []) for library in Path(folder).rglob("libcudart.so.*")]
    if not libraries:
        print("skipped: this Python has no libcudart (pip's nvidia-cuda-runtime)")
        return 77
    runtime, number = ctypes.CDLL(str(libraries[0])), ctypes.c_int()
    assert runtime.cudaDriverGetVersion(ctypes.byref(number)) == 0 and number.value >= 12080, number.value
    runtime.cudaGetDeviceCount(ctypes.byref(number))

    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    drivers = {words[5] for words in maps if len(words) > 5 and "cuda.so" in words[5]}
    assert drivers == {os.path.realpath(shim), os.path.realpath(fake)}, drivers
    code = [[int(end, 16) for end in words[0].split("-")] for words in maps if words[-1] == os.path.realpath(shim) and "x" in words[1]]

    driver = ctypes.CDLL(fake)
    driver.fake_cuda_asked_for.restype = ctypes.c_char_p
    asked, place = [], 0
    while (line := driver.fake_cuda_asked_for(ctypes.c_size_t(place))) is not None:
        asked.append(line.decode().split(" "))
        place += 1
    missing = set(GATED) - {symbol for symbol, _, _ in asked}
    assert not missing, f"the runtime did not ask for {missing}"

    library = ctypes.CDLL("libcuda.so.1")  # as everybody finds it
    for symbol, version, flags in asked:
        if symbol in GATED:
            function = ctypes.c_void_p()
            library.cuGetProcAddress_v2(symbol.encode(), ctypes.byref(function), int(version), ctypes.c_uint64(int(flags)), None)
            assert any(begin <= function.value < end for begin, end in code), f"{symbol} {version} {flags} is not the shim's"
    print(f"ok: {len(asked)} functions asked for by {libraries[0].name}")
    return 0


def main():
    shim, fake = sys.argv[1:3]
    if sys.argv[3:] == ["within"]:
        return within(shim, fake)
    environment = dict(os.environ, LD_PRELOAD=shim, SPILLWAY_CUDA_DRIVER=fake)
    return subprocess.run([sys.executable, __file__, shim, fake, "within"], env=environment, timeout=120).returncode


sys.exit(main())
