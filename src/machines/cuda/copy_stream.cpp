#include "machines/cuda/copy_stream.h"

namespace spillway {

Result<std::unique_ptr<CopyStream>> CopyStream::make(const CudaDriver& driver) {
  std::unique_ptr<CopyStream> made(new CopyStream(driver));
  TRY_VOID(driver.check(driver.cuStreamCreate(&made->stream_, CU_STREAM_NON_BLOCKING), "make a stream for copies"));
  for (CUevent& event : made->events_)
    TRY_VOID(driver.check(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "make an event"));
  return made;
}

CopyStream::~CopyStream() {
  if (stream_ == nullptr) return;
  driver_.cuStreamSynchronize(stream_);
  for (const CUevent event : events_)
    if (event != nullptr) driver_.cuEventDestroy(event);
  driver_.cuStreamDestroy(stream_);
}

Result<> CopyStream::wait_for(CUevent event) {
  return driver_.check(driver_.cuStreamWaitEvent(stream_, event, 0), "let copies wait for kernels");
}

Result<> CopyStream::copy_to_device(CUdeviceptr to, const std::byte* from, std::size_t bytes) {
  return driver_.check(driver_.cuMemcpyHtoDAsync(to, from, bytes, stream_), "copy a block to the device");
}

Result<> CopyStream::copy_from_device(std::byte* to, CUdeviceptr from, std::size_t bytes) {
  return driver_.check(driver_.cuMemcpyDtoHAsync(to, from, bytes, stream_), "copy a block from the device");
}

Result<std::uint64_t> CopyStream::mark() {
  const std::uint64_t mark = marked_ + 1;
  if (mark - done() >= kEvents) {
    TRY_VOID(driver_.check(driver_.cuEventSynchronize(event_of(mark)), "wait for a copy"));
    TRY_VOID(poll());
  }
  TRY_VOID(driver_.check(driver_.cuEventRecord(event_of(mark), stream_), "mark the end of a copy"));
  return marked_ = mark;
}

Result<> CopyStream::poll() {
  for (std::uint64_t next = done() + 1; next <= marked_; ++next) {
    const CUresult result = driver_.cuEventQuery(event_of(next));
    if (result == CUDA_ERROR_NOT_READY) break;
    TRY_VOID(driver_.check(result, "copy blocks"));
    done_.store(next, std::memory_order_release);
  }
  return {};
}

}  // namespace spillway
