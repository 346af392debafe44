#include "machines/cpu/probe.h"

#include <gtest/gtest.h>

#include "machines/cpu/userfault.h"

namespace spillway {
namespace {

TEST(MachineProbe, MeasuresPlausibleNumbers) {
  if (auto opened = Userfault::open(); !opened) GTEST_SKIP() << opened.error().message;
  const auto probe = probe_machine("/var/tmp");
  ASSERT_TRUE(probe) << probe.error().message;
  RecordProperty("fault_ns", std::to_string(probe->fault.value));
  RecordProperty("copy_rate", std::to_string(probe->copy_rate.value));
  RecordProperty("ssd_write", std::to_string(probe->ssd_write.value));
  RecordProperty("ssd_read", std::to_string(probe->ssd_read.value));
  RecordProperty("ssd_write_latency_ns", std::to_string(probe->ssd_write_latency.value));
  RecordProperty("ssd_read_latency_ns", std::to_string(probe->ssd_read_latency.value));
  EXPECT_GT(probe->copy_rate.value, 100'000'000u);
  EXPECT_GT(probe->ssd_read.value, 1'000'000u);
  EXPECT_GT(probe->ssd_write.value, 1'000'000u);
  for (const Nanos time : {probe->fault, probe->ssd_read_latency, probe->ssd_write_latency}) {
    EXPECT_GT(time, Nanos{100});
    EXPECT_LT(time, Nanos{1'000'000'000});
  }
}

TEST(MachineProbe, ADirectoryThatCannotBeSpilledToIsAnError) {
  if (auto opened = Userfault::open(); !opened) GTEST_SKIP() << opened.error().message;
  EXPECT_FALSE(probe_machine("/dev/shm"));
}

}  // namespace
}  // namespace spillway
