#include "policies/traffic.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace spillway {
namespace {

// The same kernel by kernel, without trees.
struct PlainTraffic {
  std::vector<std::uint64_t> link, ssd;
  std::uint64_t free(Traffic::Lane lane, std::size_t kernel) const {
    return lane == Traffic::Lane::host ? link[kernel] : std::min(link[kernel], ssd[kernel]);
  }
  std::optional<std::uint32_t> need(Traffic::Lane lane, std::uint32_t at, bool forward, std::uint64_t bytes) const {
    const auto kernels = static_cast<std::uint32_t>(link.size());
    for (std::uint32_t count = 1; count <= kernels; ++count) {
      const std::uint64_t here = free(lane, forward ? (at + count - 1) % kernels : (at + kernels - count) % kernels);
      if (here >= bytes) return count;
      bytes -= here;
    }
    return std::nullopt;
  }
  void book(Traffic::Lane lane, std::uint32_t at, bool forward, std::uint64_t bytes) {
    const auto kernels = static_cast<std::uint32_t>(link.size());
    for (std::uint32_t count = 1; bytes > 0; ++count) {
      const std::uint32_t kernel = forward ? (at + count - 1) % kernels : (at + kernels - count) % kernels;
      const std::uint64_t taken = std::min(bytes, free(lane, kernel));
      link[kernel] -= taken;
      if (lane == Traffic::Lane::ssd) ssd[kernel] -= taken;
      bytes -= taken;
    }
  }
};

TEST(TrafficProperty, AgreesWithCountingKernelByKernel) {
  EXPECT_TRUE(rc::check([] {
    const auto kernels = *rc::gen::inRange<std::uint32_t>(1, 20);
    const auto some = rc::gen::container<std::vector<std::uint64_t>>(kernels, rc::gen::inRange<std::uint64_t>(0, 12));
    PlainTraffic plain{*some, *some};
    Traffic traffic(plain.link, plain.ssd);
    const PlainTraffic idle = plain;
    for (int step = 0; step < 20; ++step) {
      const auto lane = *rc::gen::element(Traffic::Lane::host, Traffic::Lane::ssd);
      const bool forward = *rc::gen::arbitrary<bool>();
      const auto at = *rc::gen::inRange<std::uint32_t>(0, kernels);
      const auto bytes = *rc::gen::inRange<std::uint64_t>(1, 40);
      const auto ask = [&](bool when_idle) {
        return forward ? traffic.forward(lane, at, bytes, kernels, when_idle)
                       : traffic.backward(lane, at, bytes, kernels, when_idle);
      };
      RC_ASSERT(ask(true) == idle.need(lane, at, forward, bytes));
      const auto needed = plain.need(lane, at, forward, bytes);
      RC_ASSERT(ask(false) == needed);
      if (!needed) continue;
      plain.book(lane, at, forward, bytes);
      if (forward)
        traffic.book_forward(lane, at, bytes);
      else
        traffic.book_backward(lane, at, bytes);
    }
  }));
}

}  // namespace
}  // namespace spillway
