#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../../cuda/strict/strict_driver.h"

namespace spillway {

// What a kernel is on a GPU: it runs on the thread of a stream, after what that was given before, and may touch the
// memory of the device that it names. It owns no tensors of the device: their memory may have another owner by then.
struct DeviceWork {
  std::string name;
  std::vector<StrictKernel::Memory> memory;
  std::function<void()> run;
};

// On the calling thread's stream. What it throws is thrown when somebody waits.
void launch(DeviceWork work);
// Waits for it and throws what it throws.
void launch_and_wait(DeviceWork work);
// By work that nobody waited for.
void throw_what_was_thrown();

}  // namespace spillway
