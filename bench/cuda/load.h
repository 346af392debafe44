#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "gpu.h"

namespace spillway::probe {

// Does something on a thread of its own, over and over, until it goes.
class Load {
 public:
  Load(const Gpu& gpu, std::function<void()> once)
      : thread_([&gpu, once = std::move(once), this] {
          gpu.use_in_this_thread();
          while (!stop_) once();
        }) {}
  ~Load() {
    stop_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace spillway::probe
