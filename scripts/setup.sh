# Shared by ./test and ./demo (bash, sourced after steps.sh): installs what is missing and builds. Run again, it only looks.

torch_version=2.13.0
oldest_cuda_torch=2.11.0
tool_packages=(g++ cmake ninja-build pkg-config python3 python3-venv ca-certificates zstd)
library_packages=(libfmt-dev liburing-dev libcli11-dev libeigen3-dev nlohmann-json3-dev libtomlplusplus-dev libzstd-dev libxxhash-dev
  libgtest-dev librapidcheck-dev node-d3)
check_packages=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev chromium)

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {  # missing_packages NAME...: those that dpkg does not know as installed, one a line
  comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' "$@" 2>/dev/null | sed -n 's/ ii *$//p' | sort -u)
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

install_packages() {
  local missing
  command -v dpkg-query >/dev/null || die "this is no Debian: install the counterparts of $* yourself, then build with cmake --preset release"
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "not root and no sudo: ask somebody who is to run: apt-get install ${missing[*]}"
    say "  installing by sudo, which may ask for your password: ${missing[*]}"
    sudo -n true 2>/dev/null || { sudo -v </dev/tty; } 2>/dev/null || die "sudo refused; ask an administrator to run: apt-get install ${missing[*]}"
  fi
  step "Reading the lists of packages" apt_get update
  step "Installing ${#missing[@]} packages" apt_get install --no-install-recommends "${missing[@]}"
}

# Spillway serves page faults in user space, which Linux lets only root do unless it is told otherwise.
grant_userfaultfd() {
  local device=/dev/userfaultfd
  { [ "$(id -u)" -eq 0 ] || [ -w $device ] || [ "$(cat /proc/sys/vm/unprivileged_userfaultfd 2>/dev/null)" = 1 ]; } && return
  [ -e $device ] || { say "  $device is missing: this needs Linux 6.1 or newer, and in a container the device passed in (--device $device)"; return 1; }
  (install_packages acl) || return 1
  say "  granting $(id -un) access to $device by sudo; to undo it: sudo setfacl -b $device (a restart undoes it too)"
  as_root setfacl -m "u:$(id -u):rw" $device && return
  say "  sudo setfacl failed; ask an administrator for read and write access to $device"
  return 1
}

has_torch_2() {
  "$1" -c 'import sys, torch; sys.exit(torch.__version__.split(".")[0] != "2")' 2>/dev/null
}

# Sets $python to SPILLWAY_PYTHON if that is given, else to .venv with the PyTorch that the project is tested with.
# A stamp says that the venv was seen to work: importing PyTorch just to find out takes seconds.
find_python() {
  local venv=$root/.venv stamp=$root/.venv/spillway-torch
  if [ -n "${SPILLWAY_PYTHON:-}" ]; then
    python=$(command -v "$SPILLWAY_PYTHON") || die "SPILLWAY_PYTHON=$SPILLWAY_PYTHON is not a program"
    has_torch_2 "$python" || die "SPILLWAY_PYTHON=$SPILLWAY_PYTHON cannot import PyTorch 2; install it there, or unset the variable to use .venv"
    return
  fi
  python=$venv/bin/python
  [ "$(cat "$stamp" 2>/dev/null)" = "$torch_version" ] && [ -x "$python" ] && return
  if ! { [ -x "$python" ] && "$python" -c "import expecttest, numpy, torch; assert torch.__version__.startswith('$torch_version')" 2>/dev/null; }; then
    step "Making .venv with the system's Python" /usr/bin/python3 -m venv --clear "$venv"
    step "Installing PyTorch $torch_version (about 5 GB)" "$python" -m pip install --no-input --disable-pip-version-check \
      "torch==$torch_version" numpy expecttest
    step "Importing PyTorch for the first time" "$python" -c 'import numpy, torch'
  fi
  printf '%s\n' "$torch_version" >"$stamp"
}

# The headers of the oldest PyTorch whose CUDA allocator we take the place of: that the sources compile with them is a test.
# To be called after find_python, whose pip downloads them.
find_oldest_headers() {
  local folder=$root/.venv/torch-$oldest_cuda_torch-headers
  [ -d "$folder/include" ] && return
  "$python" -c 'import importlib.util as u, pathlib, sys
sys.exit(not (pathlib.Path(u.find_spec("torch").origin).parent / "lib/libc10_cuda.so").exists())' || return 0  # It has no CUDA.
  "$python" -m pip --version >/dev/null 2>&1 || { say "  $python has no pip to download PyTorch $oldest_cuda_torch: the test of its headers is skipped"; return; }
  step "Downloading PyTorch $oldest_cuda_torch for its headers" unpack_headers "$folder"
}

unpack_headers() {  # unpack_headers FOLDER: half a GB is downloaded, 60 MB are kept
  local download=$1.part
  rm -rf "$download"
  mkdir -p "$download" || return
  "$python" -m pip download --no-deps --no-input --disable-pip-version-check --no-cache-dir --dest "$download" "torch==$oldest_cuda_torch" &&
    "$python" -c 'import glob, sys, zipfile
[wheel] = glob.glob(sys.argv[1] + "/*.whl")
with zipfile.ZipFile(wheel) as files:
    files.extractall(sys.argv[1], [name for name in files.namelist() if name.startswith("torch/include/")])' "$download" &&
    mv "$download/torch" "$1" && rm -rf "$download"
}

# What the scripts of examples/models import, in a folder of its own: nobody's PyTorch is replaced.
# To be called after find_python, whose pip installs them.
find_model_libraries() {
  local folder=$root/.venv/model-libraries list=$root/examples/models/requirements.txt wanted
  wanted=$("$python" -V && cksum <"$list") || return
  [ "$(cat "$folder/spillway-list" 2>/dev/null)" = "$wanted" ] && return
  "$python" -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch") != sys.argv[1])' "$torch_version" 2>/dev/null ||
    { say "  the libraries of examples/models are for PyTorch $torch_version, and $python has another: their tests are skipped"; return; }
  "$python" -m pip --version >/dev/null 2>&1 || { say "  $python has no pip to install the libraries of examples/models: their tests are skipped"; return; }
  step "Installing the libraries of examples/models" install_model_libraries "$folder" "$list"
  printf '%s\n' "$wanted" >"$folder/spillway-list"
}

install_model_libraries() {  # install_model_libraries FOLDER LIST: 0.3 GB
  rm -rf "$1" "$1.part"
  "$python" -m pip install --no-deps --no-input --disable-pip-version-check --no-cache-dir --no-compile --target "$1.part" -r "$2" &&
    PYTHONPATH=$1.part "$python" -c 'import timm, torchvision, transformers' && mv "$1.part" "$1"
}

# configure PRESET FOLDER [-DX=Y ...]: only if it was never done with these options; ninja notices changed CMake files itself.
configure() {
  local preset=$1 folder=$root/$2 options
  shift 2
  set -- "$@" -DSPILLWAY_WERROR="${SPILLWAY_WERROR:-OFF}"
  options=$(printf '%s\n' "$root" "$@" && cksum <"$root/CMakePresets.json")
  if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/spillway-options" 2>/dev/null)" != "$options" ]; then
    step "Configuring $preset" cmake --preset "$preset" "$@"
    printf '%s\n' "$options" >"$folder/spillway-options"
  fi
}

build() {  # build PRESET FOLDER TARGET [-DX=Y ...]
  local preset=$1 folder=$2 target=$3
  shift 3
  configure "$preset" "$folder" "$@"
  step "Building $preset: $target (in $folder/)" cmake --build "$root/$folder" --target "$target" --parallel "$cores"
}

# build_release TARGET: for the PyTorch that find_python has found.
build_release() { build release build "$1" -DSPILLWAY_PYTHON="$python"; }
