#include "machines/real/real_machine.h"

#include <chrono>

namespace spillway {

void RealMachine::stop() {
  stop_.store(true, std::memory_order_release);
  bell_.ring();
}

void RealMachine::tell_all(Nanos patience) {
  if (bell_.is_lost()) return;  // The script ends well; who would hear it?
  inbox_.end();
  static_cast<void>(told_.try_acquire_for(std::chrono::nanoseconds(patience.value)));
}

void RealMachine::let_go(LaunchId launch) {
  launches_[launch.stream.value].store(launch.serial, std::memory_order_release);
  launches_[launch.stream.value].notify_all();
}

}  // namespace spillway
