#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "roofline/device_rates.h"

namespace spillway {

// What planning and simulation know of a machine. A value; valid if it came out of machine_file.h, which also says what
// each field means to a user and what it may be (docs/formats/machine.md).
struct DeviceModel {
  Bytes memory;
  std::uint64_t count = 1;  // of equal devices, each with its own link
  DeviceRates rates = {};   // for dry runs
};
struct LinkModel {  // between the device and everything else; both ways at once
  BytesPerSecond to_device;
  BytesPerSecond from_device;
  Nanos latency;  // of each move between device and host
};
struct HostModel {
  Bytes memory;                    // for tensors; 0: evictions cannot go there
  std::uint64_t keeps_copies = 0;  // 1: what goes to the device leaves its copy there, as copies to a GPU do
};
struct SsdModel {  // one drive; its rates and its capacity count `count` times
  BytesPerSecond read;
  BytesPerSecond write;
  Nanos read_latency;
  Nanos write_latency;
  std::uint64_t count = 1;
  Bytes capacity;  // 0: there is none
};
// The flash in one drive, below the SSD's rates; drives in parallel are one of so many times the channels.
struct FlashModel {
  std::uint64_t channels = 16;
  std::uint64_t dies = 4;    // of a channel
  std::uint64_t planes = 2;  // of a die
  Bytes page{4096};
  std::uint64_t pages = 256;  // that are erased together in a plane: a flash block
  BytesPerSecond channel_rate{1'200'000'000};
  Nanos read_time{3'000};  // of a page in a plane, as the two below
  Nanos program_time{100'000};
  Nanos erase_time{1'000'000};           // of a flash block
  std::uint64_t over_provisioning = 28;  // percent of the capacity that there is beyond it
  std::uint64_t reserve = 2;             // superblocks that collecting garbage keeps free
  std::uint64_t dwpd = 30;               // drive writes a day that it endures for five years
};
struct FaultModel {  // one page fault brings `bytes`
  Nanos cost;        // of each
  Bytes bytes;
  Nanos latency;            // of each batch
  std::uint64_t batch = 1;  // so many are handled together at most
  std::uint64_t widen = 0;  // 1: a fault brings its neighbours, twice as many each time
};

struct MachineModel {
  std::string name;
  std::string description;
  std::string hash;                    // of all values below: two machines with one hash are the same machine
  std::vector<std::string> overrides;  // "device.memory=20GiB", as given on the command line
  DeviceModel device;
  LinkModel link;
  HostModel host;
  SsdModel ssd;
  std::optional<FlashModel> flash;  // nothing: the SSD's rates are all that limits it
  FaultModel fault;

  // With the SSD's rates as they were measured since, where that is known.
  MachineModel with_rates(std::optional<BytesPerSecond> read, std::optional<BytesPerSecond> write) const {
    MachineModel measured = *this;
    measured.ssd.read = read.value_or(ssd.read);
    measured.ssd.write = write.value_or(ssd.write);
    return measured;
  }
  // Note [Several devices]
  // Devices that all train the same model do the same at the same time (G10 section 6 runs them so). What they share,
  // host memory and all drives together, then serves each with an equal part, and one of them is all of them. So
  // planning and simulation know one device, and these are its parts.
  Bytes host_memory() const { return {host.memory.value / device.count}; }
  Bytes ssd_capacity() const { return {(ssd.capacity * ssd.count).value / device.count}; }
  BytesPerSecond ssd_read() const { return {ssd.read.value * ssd.count / device.count}; }
  BytesPerSecond ssd_write() const { return {ssd.write.value * ssd.count / device.count}; }
};

}  // namespace spillway
