#include "strict_driver.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <thread>

// NOLINTBEGIN(readability-identifier-naming): the driver's own names.
namespace spillway {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

thread_local bool in_host_function = false;
thread_local bool is_spared = false;

// What must never happen, on a GPU either.
[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "strict driver: %s\n", what.c_str());
  std::abort();
}
void must(bool holds, const std::string& what) {
  if (!holds) die(what);
}
std::string hex(CUdeviceptr address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

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
};
using Mark = std::shared_ptr<Recorded>;

struct Work {
  std::string name;
  std::vector<Range> device = {};  // memory of the device that it touches
  std::function<void()> run = {};
  Mark after = nullptr;  // not before this is done
  Mark marks = nullptr;  // this is done then
};

struct Stream {
  std::deque<Work> queue;  // the first one runs
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

class Driver {
 public:
  StrictCuda knobs;

  static Driver& get() {
    static auto* const driver = new Driver;
    return *driver;
  }

  // Every call comes by here first.
  CUresult call(const char* name) {
    must(!in_host_function, std::string(name) + " is called within a kernel or host function");
    const std::lock_guard lock(knobs.mutex);
    ++knobs.calls[name];
    if (knobs.is_lost) {
      ++knobs.lost;
      return CUDA_ERROR_UNKNOWN;
    }
    const auto fault = knobs.faults.find(name);
    if (fault == knobs.faults.end() || is_spared) return CUDA_SUCCESS;
    if (fault->second.after-- > 0) return CUDA_SUCCESS;
    const CUresult result = fault->second.result;
    knobs.faults.erase(fault);
    return result;
  }

  CUresult reserve(CUdeviceptr* at, std::size_t bytes, std::size_t alignment);
  CUresult free_addresses(CUdeviceptr at, std::size_t bytes);
  CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult map(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle);
  CUresult unmap(CUdeviceptr at, std::size_t bytes);
  CUresult set_access(CUdeviceptr at, std::size_t bytes);
  CUresult allocate(CUdeviceptr* at, std::size_t bytes);
  CUresult free(CUdeviceptr at);
  CUresult pin(void** memory, std::size_t bytes);
  CUresult unpin(void* memory);

  void enqueue(Stream& stream, Work work);
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

  Driver() {
    file_ = ::memfd_create("strict cuda", MFD_CLOEXEC);
    must(file_ >= 0, "no memfd");
    knobs.is_spared = [](bool spared) { is_spared = spared; };
    if (const char* const bytes = std::getenv("STRICT_CUDA_DEVICE_BYTES"); bytes != nullptr)
      knobs.device_bytes = std::strtoull(bytes, nullptr, 10);
  }
  void run(Stream& stream);
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

CUresult Driver::reserve(CUdeviceptr* at, std::size_t bytes, std::size_t alignment) {
  must(bytes % kGranularity == 0, "addresses are reserved in parts of the granularity");
  alignment = std::max(alignment, kGranularity);
  const std::lock_guard lock(mutex_);
  void* memory = ::mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = (reinterpret_cast<CUdeviceptr>(memory) + alignment - 1) / alignment * alignment;
  reserved_[*at] = bytes;
  return CUDA_SUCCESS;
}

CUresult Driver::free_addresses(CUdeviceptr at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(at);
  must(found != reserved_.end() && found->second == bytes, "frees addresses that are not reserved so");
  for (const auto& [mapped, mapping] : mappings_)
    if (Range{at, bytes}.overlaps({mapped, mapping.bytes})) die("frees addresses that are mapped: " + hex(mapped));
  reserved_.erase(found);  // Nobody else gets them: who still uses them faults.
  return CUDA_SUCCESS;
}

CUresult Driver::create(CUmemGenericAllocationHandle* handle, std::size_t bytes) {
  must(bytes > 0 && bytes % kGranularity == 0, "memory is made in parts of the granularity");
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard knobs_lock(knobs.mutex);
    if (knobs.created + bytes > knobs.device_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    knobs.created += bytes;
    knobs.most_created = std::max(knobs.most_created, knobs.created);
  }
  Physical made{.bytes = bytes};
  if (auto& free = free_offsets_[bytes]; !free.empty()) {
    made.offset = free.back();
    free.pop_back();
  } else {
    made.offset = file_bytes_;
    file_bytes_ += bytes;
    must(::ftruncate(file_, static_cast<off_t>(file_bytes_)) == 0, "the memfd does not grow");
  }
  *handle = next_handle_++;
  physical_[*handle] = made;
  return CUDA_SUCCESS;
}

CUresult Driver::release(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = physical_.find(handle);
  must(found != physical_.end(), "releases memory that is not there");
  must(!found->second.mapped, "releases memory that is mapped");
  free_offsets_[found->second.bytes].push_back(found->second.offset);
  const std::lock_guard knobs_lock(knobs.mutex);
  knobs.created -= found->second.bytes;
  physical_.erase(found);
  return CUDA_SUCCESS;
}

CUresult Driver::map(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto memory = physical_.find(handle);
  must(memory != physical_.end() && memory->second.bytes == bytes, "maps memory that is not there, or a part of it");
  must(!memory->second.mapped, "maps memory twice, at " + hex(at));
  const bool reserved =
      std::ranges::any_of(reserved_, [&](const auto& one) { return Range{one.first, one.second}.holds({at, bytes}); });
  must(reserved, "maps at addresses that are not reserved: " + hex(at));
  for (const auto& [mapped, mapping] : mappings_)
    if (Range{at, bytes}.overlaps({mapped, mapping.bytes})) die("maps over a mapping at " + hex(mapped));
  void* const place = reinterpret_cast<void*>(at);
  must(::mmap(place, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file_, static_cast<off_t>(memory->second.offset)) ==
           place,
       "mmap of the memfd");
  memory->second.mapped = true;
  mappings_[at] = {.bytes = bytes, .handle = handle};
  const std::lock_guard knobs_lock(knobs.mutex);
  knobs.mapped += bytes;
  knobs.most_mapped = std::max(knobs.most_mapped, knobs.mapped);
  return CUDA_SUCCESS;
}

CUresult Driver::set_access(CUdeviceptr at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (CUdeviceptr place = at; place < at + bytes;) {
    const auto found = mappings_.find(place);
    if (found == mappings_.end()) die("sets access to what is not mapped: " + hex(place));
    must(::mprotect(reinterpret_cast<void*>(place), found->second.bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
    found->second.accessible = true;
    place += found->second.bytes;
  }
  return CUDA_SUCCESS;
}

CUresult Driver::unmap(CUdeviceptr at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_)
    for (const Work& work : stream->queue)
      for (const Range& touched : work.device)
        if (touched.overlaps({at, bytes})) die("unmaps " + hex(at) + ", which " + work.name + " uses or is about to");
  for (CUdeviceptr place = at; place < at + bytes;) {
    const auto found = mappings_.find(place);
    must(found != mappings_.end(), "unmaps what is not mapped, or not from its beginning: " + hex(place));
    const std::size_t size = found->second.bytes;
    must(place + size <= at + bytes, "unmaps a part of a mapping: " + hex(place));
    physical_.at(found->second.handle).mapped = false;
    mappings_.erase(found);
    void* const memory = reinterpret_cast<void*>(place);
    must(::mmap(memory, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == memory,
         "mmap of nothing");
    const std::lock_guard knobs_lock(knobs.mutex);
    knobs.mapped -= size;
    place += size;
  }
  return CUDA_SUCCESS;
}

bool Driver::is_accessible(const Range& range) {
  for (CUdeviceptr place = range.begin; place < range.end();) {
    const auto after = mappings_.upper_bound(place);
    if (after == mappings_.begin()) return false;
    const auto& [begin, mapping] = *std::prev(after);
    if (place >= begin + mapping.bytes || !mapping.accessible) return false;
    place = begin + mapping.bytes;
  }
  return true;
}

// The functions of before there was mapping: each allocation has addresses and memory of its own.
CUresult Driver::allocate(CUdeviceptr* at, std::size_t bytes) {
  Mapping made{.bytes = (bytes + kGranularity - 1) / kGranularity * kGranularity};
  if (const CUresult failed = create(&made.handle, made.bytes); failed != CUDA_SUCCESS) return failed;
  if (const CUresult failed = reserve(at, made.bytes, 0); failed != CUDA_SUCCESS) return failed;
  map(*at, made.bytes, made.handle);
  set_access(*at, made.bytes);
  const std::lock_guard lock(mutex_);
  allocated_[*at] = made;
  return CUDA_SUCCESS;
}

CUresult Driver::free(CUdeviceptr at) {
  Mapping freed;
  {
    std::unique_lock lock(mutex_);
    const auto found = allocated_.find(at);
    must(found != allocated_.end(), "frees what is not allocated: " + hex(at));
    freed = found->second;
    allocated_.erase(found);
    changed_.wait(lock,
                  [&] { return std::ranges::all_of(streams_, [](const auto& one) { return one->queue.empty(); }); });
  }
  unmap(at, freed.bytes);
  release(freed.handle);
  return free_addresses(at, freed.bytes);
}

CUresult Driver::pin(void** memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::size_t pinned = 0;
  for (const auto& [begin, size] : pinned_) pinned += size;
  if (pinned + bytes > knobs.pinned_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  must(*memory != MAP_FAILED, "mmap of pinned memory");
  pinned_[reinterpret_cast<std::uintptr_t>(*memory)] = bytes;
  return CUDA_SUCCESS;
}

CUresult Driver::unpin(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = pinned_.find(reinterpret_cast<std::uintptr_t>(memory));
  must(found != pinned_.end(), "frees pinned memory that is not there");
  ::munmap(memory, found->second);
  pinned_.erase(found);
  return CUDA_SUCCESS;
}

void Driver::must_be_pinned(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = pinned_.upper_bound(begin);
  must(after != pinned_.begin() && begin + bytes <= std::prev(after)->first + std::prev(after)->second,
       "copies asynchronously from or to memory that is not pinned");
}

void Driver::enqueue(Stream& stream, Work work) {
  const std::lock_guard lock(mutex_);
  must(!stream.ended, work.name + " on a stream that has been destroyed");
  for (const Range& touched : work.device)
    if (!is_accessible(touched)) die(work.name + " touches what is not mapped: " + hex(touched.begin));
  stream.queue.push_back(std::move(work));
  changed_.notify_all();
}

Stream& Driver::make_stream() {
  const std::lock_guard lock(mutex_);
  Stream& stream = *streams_.emplace_back(std::make_unique<Stream>());
  stream.thread = std::thread([this, &stream] { run(stream); });
  return stream;
}

void Driver::end_stream(Stream& stream) {
  {
    const std::lock_guard lock(mutex_);
    stream.ended = true;
    changed_.notify_all();
  }
  stream.thread.join();
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [&](const auto& one) { return one.get() == &stream; });
}

Stream& Driver::stream_of(CUstream stream) {
  static Stream& of_default = make_stream();
  if (stream == nullptr) return of_default;
  const std::lock_guard lock(mutex_);
  const bool is_there =
      std::ranges::any_of(streams_, [&](const auto& one) { return one.get() == reinterpret_cast<Stream*>(stream); });
  must(is_there, "uses a stream that is not there");
  return *reinterpret_cast<Stream*>(stream);
}

// In its order, with other threads let in at random.
void Driver::run(Stream& stream) {
  in_host_function = true;
  std::minstd_rand random(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(&stream) >> 4));
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      if (stream.queue.empty()) return stream.ended;
      const Work& first = stream.queue.front();
      return first.after == nullptr || first.after->done;
    });
    if (stream.queue.empty()) return;
    Work& work = stream.queue.front();  // Others add behind it only.
    lock.unlock();
    if (random() % 4 == 0) std::this_thread::yield();
    if (work.run) work.run();
    lock.lock();
    if (work.marks) *work.marks = {.done = true, .at = std::chrono::steady_clock::now()};
    stream.queue.pop_front();
    changed_.notify_all();
  }
}

bool Driver::is_idle(Stream& stream) {
  const std::lock_guard lock(mutex_);
  return stream.queue.empty();
}

void Driver::wait_until_idle(Stream& stream) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stream.queue.empty(); });
}

void Driver::wait_until(const Mark& mark) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return mark->done; });
}

bool Driver::is_done(const Mark& mark) {
  const std::lock_guard lock(mutex_);
  return mark == nullptr || mark->done;
}

Driver& driver() { return Driver::get(); }
Event& event_of(CUevent event) { return *reinterpret_cast<Event*>(event); }

// So that memory is not in use any more when the work's structure is: a kernel's parameters.
std::shared_ptr<std::vector<std::vector<std::byte>>> copy_of(const StrictKernel& kernel, void** parameters) {
  auto copies = std::make_shared<std::vector<std::vector<std::byte>>>();
  for (std::size_t at = 0; at < kernel.parameters.size(); ++at) {
    const auto* bytes = static_cast<const std::byte*>(parameters[at]);
    copies->emplace_back(bytes, bytes + kernel.parameters[at]);
  }
  return copies;
}

}  // namespace
}  // namespace spillway

using spillway::driver;
using spillway::event_of;
using spillway::Range;

#define COUNTED(name) \
  if (const CUresult failed = driver().call(#name); failed != CUDA_SUCCESS) return failed

extern "C" {

spillway::StrictCuda* strict_cuda() { return &driver().knobs; }

CUresult cuInit(unsigned) {
  COUNTED(cuInit);
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_UNKNOWN     ? "CUDA_ERROR_UNKNOWN"
                                            : nullptr;
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "unknown error";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  COUNTED(cuDeviceGet);
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "a strict device without a GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = driver().knobs.device_bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* free, size_t* total) {
  COUNTED(cuMemGetInfo);
  const std::lock_guard lock(driver().knobs.mutex);
  *total = driver().knobs.device_bytes;
  *free = *total - driver().knobs.created;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  COUNTED(cuDevicePrimaryCtxRetain);
  *context = reinterpret_cast<CUcontext>(&driver());
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(&driver());
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuModuleLoadData(CUmodule*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemAlloc(CUdeviceptr* at, size_t bytes) {
  COUNTED(cuMemAlloc);
  return driver().allocate(at, bytes);
}
CUresult cuMemFree(CUdeviceptr at) {
  COUNTED(cuMemFree);
  return driver().free(at);
}
CUresult cuMemHostRegister(void*, size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemHostUnregister(void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemcpyDtoDAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = spillway::kGranularity;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* at, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  COUNTED(cuMemAddressReserve);
  return driver().reserve(at, bytes, alignment);
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
  COUNTED(cuMemAddressFree);
  return driver().free_addresses(at, bytes);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  COUNTED(cuMemCreate);
  return driver().create(handle, bytes);
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  COUNTED(cuMemRelease);
  return driver().release(handle);
}
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle handle, unsigned long long) {
  COUNTED(cuMemMap);
  return driver().map(at, bytes, handle);
}
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  COUNTED(cuMemUnmap);
  return driver().unmap(at, bytes);
}
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc*, size_t) {
  COUNTED(cuMemSetAccess);
  return driver().set_access(at, bytes);
}
CUresult cuMemAllocHost(void** memory, size_t bytes) {
  COUNTED(cuMemAllocHost);
  return driver().pin(memory, bytes);
}
CUresult cuMemFreeHost(void* memory) {
  COUNTED(cuMemFreeHost);
  return driver().unpin(memory);
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  COUNTED(cuStreamCreate);
  *stream = reinterpret_cast<CUstream>(&driver().make_stream());
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  COUNTED(cuStreamDestroy);
  driver().end_stream(driver().stream_of(stream));
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  COUNTED(cuStreamSynchronize);
  driver().wait_until_idle(driver().stream_of(stream));
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream stream) {
  COUNTED(cuStreamQuery);
  return driver().is_idle(driver().stream_of(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  COUNTED(cuStreamWaitEvent);
  const auto mark = event_of(event).get();
  driver().enqueue(driver().stream_of(stream), {.name = "a wait for an event", .after = mark});
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  COUNTED(cuEventCreate);
  *event = reinterpret_cast<CUevent>(new spillway::Event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  COUNTED(cuEventDestroy);
  delete &event_of(event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  COUNTED(cuEventRecord);
  const auto mark = event_of(event).record();
  driver().enqueue(driver().stream_of(stream), {.name = "an event", .marks = mark});
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  COUNTED(cuEventQuery);
  return driver().is_done(event_of(event).get()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  *mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  COUNTED(cuEventElapsedTime);
  const auto begin = event_of(from).get(), end = event_of(to).get();
  if (begin == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!driver().is_done(begin) || !driver().is_done(end)) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) {
  COUNTED(cuEventSynchronize);
  if (const auto mark = event_of(event).get()) driver().wait_until(mark);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  COUNTED(cuMemcpyHtoDAsync);
  driver().must_be_pinned(from, bytes);
  driver().enqueue(driver().stream_of(stream), {.name = "a copy to the device",
                                                .device = {Range{to, bytes}},
                                                .run = [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); }});
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  COUNTED(cuMemcpyDtoHAsync);
  driver().must_be_pinned(to, bytes);
  driver().enqueue(driver().stream_of(stream),
                   {.name = "a copy from the device", .device = {Range{from, bytes}}, .run = [=] {
                      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
                    }});
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  COUNTED(cuMemsetD8Async);
  driver().enqueue(driver().stream_of(stream), {.name = "a set", .device = {Range{to, bytes}}, .run = [=] {
                                                  std::memset(reinterpret_cast<void*>(to), value, bytes);
                                                }});
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  const auto& all = reinterpret_cast<const spillway::StrictKernel*>(function)->parameters;
  if (index >= all.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (size_t before = 0; before < index; ++before) *offset += all[before];
  *bytes = all[index];
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = reinterpret_cast<const spillway::StrictKernel*>(function)->name.c_str();
  return CUDA_SUCCESS;
}
CUresult cuKernelGetParamInfo(CUkernel, size_t, size_t*, size_t*) { return CUDA_ERROR_INVALID_HANDLE; }
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
  COUNTED(cuLaunchKernel);
  auto& kernel = *reinterpret_cast<spillway::StrictKernel*>(function);
  std::vector<Range> touched;
  for (const auto& memory : kernel.memory(parameters)) touched.push_back({memory.address, memory.bytes});
  const auto run = [&kernel, copies = spillway::copy_of(kernel, parameters)] {
    std::vector<void*> pointers;
    for (auto& copy : *copies) pointers.push_back(copy.data());
    kernel.run(pointers.data());
  };
  driver().enqueue(driver().stream_of(stream), {.name = kernel.name, .device = std::move(touched), .run = run});
  return CUDA_SUCCESS;
}
}
// NOLINTEND(readability-identifier-naming)
