#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gpu.h"

namespace spillway::probe {

struct Context {
  const Gpu& gpu;
  std::string disk;  // a folder on the disk to measure
};

// What one process of the probe does. The most decisive first.
struct Part {
  std::string_view name, question;
  int seconds;  // after which it is ended
  void (*run)(const Context&);
};
std::span<const Part> parts();

void card(const Context&);
void mapping(const Context&);
void handles_keep_their_bytes(const Context&);
void one_handle_at_two_addresses(const Context&);
void unmap_beside_a_kernel(const Context&);
void unmap_under_a_kernel(const Context&);
void copy_to_what_is_not_mapped(const Context&);
void kernel_on_what_is_not_mapped(const Context&);
void first_launch_while_others_run(const Context&);
void host_numa_mapped(const Context&);
void host_mapped(const Context&);
void link(const Context&);
void pinning(const Context&);
void disk(const Context&);

}  // namespace spillway::probe
