#include "strict_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace spillway::strict {
namespace {

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

}  // namespace

Driver::Driver() {
  file_ = ::memfd_create("strict cuda", MFD_CLOEXEC);
  must(file_ >= 0, "no memfd");
  knobs.is_spared = [](bool spared) { is_spared = spared; };
  if (const char* const bytes = std::getenv("STRICT_CUDA_DEVICE_BYTES"); bytes != nullptr)
    knobs.device_bytes = std::strtoull(bytes, nullptr, 10);
}
CUresult Driver::call(const char* name) {
  must(!in_host_function, std::string(name) + " is called within a kernel or host function");
  const std::lock_guard lock(knobs.mutex);
  ++knobs.calls[name];
  if (knobs.all_fail != CUDA_SUCCESS) return knobs.all_fail;
  const auto fault = knobs.faults.find(name);
  if (fault == knobs.faults.end() || is_spared) return CUDA_SUCCESS;
  if (fault->second.after-- > 0) return CUDA_SUCCESS;
  const CUresult result = fault->second.result;
  knobs.faults.erase(fault);
  return result;
}

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

void Driver::must_be_unused(const Range& range, const char* what) {
  for (const auto& stream : streams_)
    for (const Work& work : stream->queue)
      for (const Range& touched : work.device)
        if (touched.overlaps(range)) die(what + hex(range.begin) + ", which " + work.name + " uses or is about to");
}

CUresult Driver::set_access(CUdeviceptr at, std::size_t bytes, bool accessible) {
  const std::lock_guard lock(mutex_);
  if (!accessible) must_be_unused({at, bytes}, "forbids access to ");
  for (CUdeviceptr place = at; place < at + bytes;) {
    const auto found = mappings_.find(place);
    if (found == mappings_.end()) die("sets access to what is not mapped: " + hex(place));
    const int protection = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
    must(::mprotect(reinterpret_cast<void*>(place), found->second.bytes, protection) == 0, "mprotect");
    found->second.accessible = accessible;
    place += found->second.bytes;
  }
  return CUDA_SUCCESS;
}

CUresult Driver::unmap(CUdeviceptr at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  must_be_unused({at, bytes}, "unmaps ");
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
  set_access(*at, made.bytes, true);
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
  if (stream.capture != nullptr) {
    must(work.marks != nullptr, work.name + " on a stream that is captured");
    work.marks->captured = true;
    return;
  }
  must(work.after == nullptr || !work.after->captured, "waits for an event that was captured into a graph");
  for (const Range& touched : work.device) {
    if (is_accessible(touched)) continue;
    const std::lock_guard knobs_lock(knobs.mutex);
    if (!knobs.loses_device) die(work.name + " touches what is not mapped: " + hex(touched.begin));
    knobs.all_fail = CUDA_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  stream.queue.push_back(std::move(work));
  changed_.notify_all();
}

bool Driver::capture(Stream& stream, const std::shared_ptr<Node>& node) {
  const std::lock_guard lock(mutex_);
  if (stream.capture != nullptr) stream.capture->push_back(node);
  return stream.capture != nullptr;
}

void Driver::begin_capture(Stream& stream) {
  const std::lock_guard lock(mutex_);
  must(stream.capture == nullptr, "captures a stream twice");
  stream.capture = std::make_unique<Graph>();
}

Graph* Driver::end_capture(Stream& stream) {
  const std::lock_guard lock(mutex_);
  must(stream.capture != nullptr, "ends a capture that has not begun");
  return stream.capture.release();
}

bool Driver::is_captured(Stream& stream) {
  const std::lock_guard lock(mutex_);
  return stream.capture != nullptr;
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

}  // namespace spillway::strict
