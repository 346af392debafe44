"""functions_test.py FUNCTIONS HEADER ...: that the shim forwards all that the driver's headers declare, whatever version they are of."""
import re
import sys
from pathlib import Path

names = Path(sys.argv[1]).read_text().splitlines()
text = "\n".join(Path(header).read_text() for header in sys.argv[2:])
declared = set(re.findall(r"\bCUDAAPI\s+(cu[A-Z]\w+)\s*\(", text)) | set(re.findall(r"#define\s+cu\w+\s+(cu[A-Z]\w+)\s*$", text, re.M))
declared |= {f"{name}_{kind.lower()}" for kind, name in re.findall(r"__CUDA_API_(PT[DS][SZ])\((cu\w+)\)", text)}
declared.discard("cuGetProcAddress_v2_ptsz")  # a function of the header itself
missing = sorted(declared - set(names))
assert names == sorted(set(names)), "sort functions.txt, each name once"
assert not missing, f"src/hook/cuda/functions.txt lacks {', '.join(missing)}"
print(f"ok: {len(declared)} of {len(names)}")
