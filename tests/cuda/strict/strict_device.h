#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <thread>

#include "strict_driver.h"

namespace spillway::strict {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Range {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  CUdeviceptr end() const { return begin + bytes; }
  bool overlaps(const Range& other) const { return begin < other.end() && other.begin < end(); }
  bool holds(const Range& other) const { return begin <= other.begin && other.end() <= end(); }
};

// One recording of an event: done when the stream has come that far.
struct Recorded {
  bool done = false;
  std::chrono::steady_clock::time_point at;
  bool captured = false;  // while a graph was: there is nothing to wait for
};
using Mark = std::shared_ptr<Recorded>;

struct Work {
  std::string name;
  std::vector<Range> device = {};  // memory of the device that it touches
  std::function<void()> run = {};
  Mark after = nullptr;  // not before this is done
  Mark marks = nullptr;  // this is done then
};

// A kernel with its parameters, which the caller's memory need not hold any more.
struct Node {
  StrictKernel* kernel = nullptr;
  std::vector<std::vector<std::byte>> values;
  std::vector<void*> parameters;  // point to them

  std::vector<Range> touched() {
    std::vector<Range> ranges;
    for (const auto& memory : kernel->memory(parameters.data())) ranges.push_back({memory.address, memory.bytes});
    return ranges;
  }
};
using Graph = std::vector<std::shared_ptr<Node>>;

struct Stream {
  std::deque<Work> queue;          // the first one runs
  std::unique_ptr<Graph> capture;  // not null: kernels go there
  bool ended = false;
  std::thread thread;
};

struct Event {
  std::mutex mutex;
  Mark mark;  // GUARDED_BY(mutex), of the latest recording
  Mark get() {
    const std::lock_guard lock(mutex);
    return mark;
  }
  Mark record() {
    const std::lock_guard lock(mutex);
    return mark = std::make_shared<Recorded>();
  }
};

// The device: its memory, mappings and streams. For any thread. What must not be ends the process.
class Driver {
 public:
  StrictCuda knobs;

  static Driver& get() {
    static auto* const driver = new Driver;
    return *driver;
  }

  // Every call comes by here first.
  CUresult call(const char* name);

  CUresult reserve(CUdeviceptr* at, std::size_t bytes, std::size_t alignment);
  CUresult free_addresses(CUdeviceptr at, std::size_t bytes);
  CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult map(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle);
  CUresult unmap(CUdeviceptr at, std::size_t bytes);
  CUresult set_access(CUdeviceptr at, std::size_t bytes, bool accessible);
  CUresult allocate(CUdeviceptr* at, std::size_t bytes);
  CUresult free(CUdeviceptr at);
  CUresult pin(void** memory, std::size_t bytes);
  CUresult unpin(void* memory);

  void enqueue(Stream& stream, Work work);
  bool capture(Stream& stream, const std::shared_ptr<Node>& node);  // false: nothing is captured there
  void begin_capture(Stream& stream);
  Graph* end_capture(Stream& stream);
  bool is_captured(Stream& stream);
  Stream& make_stream();
  void end_stream(Stream& stream);
  Stream& stream_of(CUstream stream);
  bool is_idle(Stream& stream);
  void wait_until_idle(Stream& stream);
  void wait_until(const Mark& mark);
  bool is_done(const Mark& mark);
  // Nobody wants to wait for a copy of memory that is not pinned.
  void must_be_pinned(const void* memory, std::size_t bytes);

 private:
  struct Physical {
    std::size_t offset = 0, bytes = 0;
    bool mapped = false;
  };
  struct Mapping {
    std::size_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
    bool accessible = false;
  };

  Driver();
  void run(Stream& stream);
  void must_be_unused(const Range& range, const char* what);
  bool is_accessible(const Range& range);

  std::mutex mutex_;
  std::condition_variable changed_;
  int file_ = -1;
  std::size_t file_bytes_ = 0;
  std::map<std::size_t, std::vector<std::size_t>> free_offsets_;  // by bytes
  std::map<CUmemGenericAllocationHandle, Physical> physical_;
  CUmemGenericAllocationHandle next_handle_ = 1;
  std::map<CUdeviceptr, std::size_t> reserved_;
  std::map<CUdeviceptr, Mapping> mappings_;
  std::map<CUdeviceptr, Mapping> allocated_;
  std::map<std::uintptr_t, std::size_t> pinned_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace spillway::strict
