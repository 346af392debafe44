#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace spillway {

// Tells when the kernel has given up a run's spill file. It does so some time after the process has gone, since
// io_uring is torn down by a thread of the kernel's. A pipe's end that io_uring holds beside the file goes with it.
class Teardown {
 public:
  static Result<Teardown> make();

  // What the process that spills opens for writing, and holds as long as the file.
  std::string path() const;
  // Whether nobody holds it any more, or has by the end of that time.
  bool is_over(Nanos limit) const;

 private:
  explicit Teardown(UniqueFd end) : end_(std::move(end)) {}

  UniqueFd end_;
};

}  // namespace spillway
