#include "machines/cpu/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/median.h"
#include "machines/cpu/choose_eviction.h"
#include "machines/cpu/quiet_thread.h"
#include "machines/cpu/userfault.h"
#include "machines/real/clock.h"
#include "machines/real/memory_range.h"
#include "machines/real/ring.h"
#include "machines/real/spill_file.h"

namespace spillway {
namespace {

constexpr Nanos kPassTime{1'500'000'000};  // the most that one pass over the file takes; there are three
constexpr std::uint32_t kFileBlocks = 128, kPartOfDisk = 8;  // Somebody may need it meanwhile.
constexpr std::uint32_t kAtOnce = 16;

BytesPerSecond rate_of(Bytes bytes, Nanos time) {
  return {static_cast<std::uint64_t>(static_cast<double>(bytes.value) / std::max(seconds(time), 1e-9))};
}

Result<BytesPerSecond> measure_copying() {
  constexpr std::uint32_t kBlocks = 16;
  TRY(const MemoryRange memory, MemoryRange::reserve(2 * kBlocks));
  std::memset(memory.begin(), 1, memory.bytes());
  std::vector<Nanos> times;
  for (const Nanos begin = now(); now() - begin < Nanos{300'000'000};) {
    const Nanos before = now();
    std::memcpy(memory.block(kBlocks), memory.block(0), kBlocks * kBlockBytes.value);
    times.push_back(now() - before);
  }
  return rate_of(kBlockBytes * kBlocks, median(times));
}

// Serves faults on `range` from one frame, as the pager does when it has one at hand.
class FaultServer {
 public:
  FaultServer(const Userfault& userfault, EvictionMethod method, std::byte* frame)
      : userfault_(userfault), method_(method), frame_(frame) {}
  ~FaultServer() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Result<> start() {
    TRY(thread_, quiet_thread("spillway-probe", [this] { serve(); }));
    return {};
  }
  int error() const { return error_; }

 private:
  void serve() noexcept {
    std::array<Userfault::Fault, 1> fault;
    while (!stop_) {
      pollfd source{userfault_.fd(), POLLIN, 0};
      ::poll(&source, 1, 20);
      if (userfault_.read(fault) == 0) continue;
      const auto address = reinterpret_cast<std::uintptr_t>(fault[0].address) / kBlockBytes.value * kBlockBytes.value;
      auto* block = reinterpret_cast<std::byte*>(address);
      error_ = method_ == EvictionMethod::move
                   ? userfault_.move(block, frame_, kBlockBytes.value, std::chrono::seconds(1))
                   : userfault_.copy(block, frame_, kBlockBytes.value);
      if (error_ != 0) userfault_.zero(block, kBlockBytes.value);  // Who waits must go on.
      userfault_.wake(block, kBlockBytes.value);
    }
  }
  const Userfault& userfault_;
  EvictionMethod method_;
  std::byte* frame_;
  std::atomic<bool> stop_{false};
  std::atomic<int> error_{0};  // why a fault could not be served; an errno
  std::thread thread_;
};

Result<Nanos> measure_fault(EvictionMethod method) {
  constexpr std::uint32_t kFaults = 64;
  TRY(Userfault userfault, Userfault::open());
  TRY(const MemoryRange range, MemoryRange::reserve(kFaults));
  TRY(const MemoryRange staging, MemoryRange::reserve(1));
  TRY_VOID(userfault.watch(range.begin(), range.bytes()));
  TRY_VOID(userfault.admit(staging.begin(), staging.bytes()));
  std::memset(staging.begin(), 1, staging.bytes());
  FaultServer server(userfault, method, staging.begin());
  TRY_VOID(server.start());
  std::vector<Nanos> times;
  for (std::uint32_t block = 0; block < kFaults; ++block) {
    const Nanos before = now();
    static_cast<volatile std::byte*>(range.block(block))[8] = std::byte{1};
    times.push_back(now() - before);
    if (const int error = server.error(); error != 0)
      return fail(Errc::unavailable, fmt::format("cannot serve a page fault: {}", errno_text(error)));
    if (method == EvictionMethod::move)
      if (const int error =
              userfault.move(staging.begin(), range.block(block), kBlockBytes.value, std::chrono::seconds(1)))
        return fail(Errc::unavailable, fmt::format("cannot move a page back: {}", errno_text(error)));
  }
  return median(times);
}

struct Disk {
  SpillFile file;
  Doorbell bell;
  MemoryRange memory;
};

struct Pass {
  BytesPerSecond rate;
  std::uint32_t blocks = 0;  // from the file's begin
};

// One pass over the file's first `blocks`, as long as there is time.
Result<Pass> measure_pass(Disk& disk, Ring& ring, bool write, std::uint32_t blocks) {
  std::vector<Completion> ended;
  std::vector<std::uint32_t> idle;
  for (std::uint32_t place = 0; place < kAtOnce; ++place) idle.push_back(place);
  std::uint32_t next = 0, done = 0;
  const Nanos begin = now();
  for (;;) {
    const bool over = next == blocks || now() - begin > kPassTime;
    if (over && idle.size() == kAtOnce) break;
    for (; !over && !idle.empty() && next < blocks; idle.pop_back())
      ring.start({idle.back(), write, disk.memory.block(idle.back()), next++ * kBlockBytes.value});
    ended.clear();
    TRY_VOID(ring.wait(ended, std::nullopt));
    for (const Completion& completion : ended) {
      if (completion.error != 0)
        return fail(Errc::io, fmt::format("cannot {} the SSD: {}", write ? "write to" : "read from",
                                          errno_text(completion.error)));
      idle.push_back(completion.id);
      ++done;
    }
  }
  return Pass{rate_of(kBlockBytes * done, now() - begin), done};
}

Result<Nanos> measure_latency(const Disk& disk, bool write, std::uint32_t blocks) {
  constexpr std::size_t kSmall = 4096;
  std::mt19937 random(1);
  std::vector<Nanos> times;
  for (const Nanos begin = now(); times.size() < 200 && (times.size() < 3 || now() - begin < Nanos{300'000'000});) {
    const auto offset = static_cast<off_t>(random() % (blocks * kBlockBytes.value / kSmall) * kSmall);
    const Nanos before = now();
    const ssize_t moved = write ? ::pwrite(disk.file.fd(), disk.memory.begin(), kSmall, offset)
                                : ::pread(disk.file.fd(), disk.memory.begin(), kSmall, offset);
    if (moved != kSmall) return fail(Errc::io, fmt::format("cannot use the SSD: {}", errno_text(errno)));
    times.push_back(now() - before);
  }
  return median(times);
}

Result<> measure_disk(const std::string& directory, MachineProbe& probe) {
  TRY(SpillFile file, SpillFile::open(directory, {}));
  probe.ssd_free = kBlockBytes * file.capacity_slots();
  TRY_VOID(file.reserve(std::clamp(file.capacity_slots() / kPartOfDisk, 1u, kFileBlocks)));
  TRY(Doorbell bell, Doorbell::make());
  TRY(MemoryRange memory, MemoryRange::reserve(kAtOnce));
  Disk disk{std::move(file), std::move(bell), std::move(memory)};
  // Not zeroes, nor the same again: some devices are fast with those.
  std::mt19937_64 random(2);
  for (std::size_t at = 0; at < disk.memory.bytes(); at += sizeof(std::uint64_t))
    *reinterpret_cast<std::uint64_t*>(disk.memory.begin() + at) = random();
  TRY(auto ring, Ring::open(disk.file.fd(), disk.bell));
  // The first writes into new space cost more than all later ones, and what was never written is read without the disk.
  TRY(const Pass first, measure_pass(disk, *ring, true, disk.file.reserved_slots()));
  TRY(const Pass write, measure_pass(disk, *ring, true, first.blocks));
  TRY(const Pass read, measure_pass(disk, *ring, false, first.blocks));
  probe.ssd_write = write.rate;
  probe.ssd_read = read.rate;
  TRY(probe.ssd_write_latency, measure_latency(disk, true, first.blocks));
  TRY(probe.ssd_read_latency, measure_latency(disk, false, first.blocks));
  return {};
}

}  // namespace

Result<MachineProbe> probe_machine(const std::string& ssd_directory) {
  MachineProbe probe;
  TRY(probe.method, choose(EvictionMethod::automatic));
  probe.memory = {static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                  static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
  probe.fault_bytes = kBlockBytes;
  TRY(probe.copy_rate, measure_copying());
  TRY(probe.fault, measure_fault(probe.method));
  TRY_VOID(measure_disk(ssd_directory, probe));
  return probe;
}

}  // namespace spillway
