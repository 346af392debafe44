#include "streams.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <mutex>

#include "device_memory.h"
#include "driver.h"
#include "launches.h"

namespace spillway {
namespace {

constexpr std::size_t kStreams = 5;  // with the default one

thread_local c10::StreamId current = 0;

const std::array<CUstream, kStreams>& streams() {
  static const auto all = [] {
    std::array<CUstream, kStreams> made{};
    for (std::size_t at = 1; at < kStreams; ++at)
      check(device_driver().cuStreamCreate(&made.at(at), CU_STREAM_NON_BLOCKING), "make a stream");
    return made;
  }();
  return all;
}
std::atomic<bool> has_others = false;

c10::Stream stream_of(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, strict_device(), id); }
CUevent event_of(void* event) { return static_cast<CUevent>(event); }

// How PyTorch reaches streams and events, from any thread.
// NOLINTBEGIN(readability-identifier-naming): PyTorch's names.
struct StrictGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kStrictType; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return strict_device(); }
  c10::Device exchangeDevice(c10::Device) const override { return strict_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  void synchronizeDevice(c10::DeviceIndex) const override { synchronize_device(); }

  c10::Stream getStream(c10::Device) const override { return stream_of(current); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getNewStream(c10::Device, int) const override {
    static std::atomic<std::size_t> next = 0;
    has_others = true;
    return stream_of(static_cast<c10::StreamId>(1 + next++ % (kStreams - 1)));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return stream_of(std::exchange(current, stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return handle_of(stream.id()); }
  bool queryStream(const c10::Stream& stream) const override {
    return device_driver().cuStreamQuery(handle_of(stream.id())) == CUDA_SUCCESS;
  }
  void synchronizeStream(const c10::Stream& stream) const override { synchronize(handle_of(stream.id())); }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    record_stream(memory.get(), handle_of(stream.id()));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) {
      CUevent made = nullptr;
      check(device_driver().cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "make an event");
      *event = made;
    }
    check(device_driver().cuEventRecord(event_of(*event), handle_of(stream.id())), "record an event");
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    check(device_driver().cuStreamWaitEvent(handle_of(stream.id()), event_of(event), 0), "wait for an event");
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || device_driver().cuEventQuery(event_of(event)) == CUDA_SUCCESS;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    check(device_driver().cuEventSynchronize(event_of(event)), "wait for an event");
    throw_what_was_thrown();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    if (event != nullptr) device_driver().cuEventDestroy(event_of(event));
  }
};
// NOLINTEND(readability-identifier-naming)

}  // namespace

CUstream handle_of(c10::StreamId id) { return id == 0 ? nullptr : streams().at(static_cast<std::size_t>(id)); }
CUstream current_stream() { return handle_of(current); }

void synchronize(CUstream stream) {
  check(device_driver().cuStreamSynchronize(stream), "wait for a stream");
  throw_what_was_thrown();
}

void synchronize_device() {
  check(device_driver().cuStreamSynchronize(nullptr), "wait for the default stream");
  if (has_others)
    for (const CUstream stream : streams()) check(device_driver().cuStreamSynchronize(stream), "wait for a stream");
  throw_what_was_thrown();
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, StrictGuard)

}  // namespace spillway
