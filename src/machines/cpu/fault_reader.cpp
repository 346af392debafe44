#include "machines/cpu/fault_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "machines/cpu/quiet_thread.h"
#include "machines/real/clock.h"

namespace spillway {
namespace {

alignas(kPageBytes) constexpr std::array<std::byte, kPageBytes> kZeroes{};

}  // namespace

Result<std::unique_ptr<FaultReader>> FaultReader::start(const Userfault& userfault, FaultQueue& queue,
                                                        const Doorbell& bell, Fail fail) {
  TRY(Doorbell stop, Doorbell::make());
  std::unique_ptr<FaultReader> reader(new FaultReader(userfault, queue, bell, std::move(fail), std::move(stop)));
  TRY(reader->thread_, quiet_thread("spillway-fault", [self = reader.get()] { self->serve(); }));
  return reader;
}

FaultReader::~FaultReader() {
  stop_.ring();
  if (thread_.joinable()) thread_.join();
}

void FaultReader::serve() noexcept {
  std::array<Userfault::Fault, 16> faults;
  for (;;) {
    std::array<pollfd, 2> sources{pollfd{userfault_.fd(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
    const int ready = ::poll(sources.data(), sources.size(), -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || ((sources[0].revents | sources[1].revents) & (POLLNVAL | POLLERR | POLLHUP)) != 0)
      return fail_(kDescriptorsClosed);
    if (sources[1].revents != 0) return;
    const std::size_t count = userfault_.read(faults);
    const Nanos at = now();
    bool news = false;
    for (std::size_t index = 0; index < count; ++index) {
      const Userfault::Fault& fault = faults[index];
      if (fault.moved_away)
        return fail_(
            "the script has given a tensor's memory other addresses (mremap), where it cannot be served; let it copy "
            "the tensor instead");
      if (fault.thread == run_loop_.load(std::memory_order_relaxed)) {
        std::byte* page = page_of(fault.address);
        if (fault.write_protected)
          userfault_.protect(page, kPageBytes, false);  // It writes to frames off their blocks.
        else
          userfault_.copy(page, kZeroes.data(), kPageBytes, true);  // EEXIST: somebody was faster.
        userfault_.wake(page, kPageBytes);
        continue;
      }
      queue_.push({fault, at});
      news = true;
    }
    if (news) bell_.ring();
  }
}

}  // namespace spillway
