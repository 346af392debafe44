#include "journal/kernel_names.h"

#include <string>

#include "journal/coder.h"
#include "journal/fields.h"
#include "journal/record.h"

namespace spillway {

void KernelNames::name(ExecutionId execution, std::string_view name) {
  if (execution == ExecutionId{} || !file_.has_begun()) return;
  {
    const MutexLock lock(mutex_);
    if (named_.size() == kMost || !named_.insert(execution).second) return;
  }
  std::string bytes;
  Encoder encode(bytes);
  encode(Record{Named{execution, std::string(name)}});
  file_.append(bytes);
}

}  // namespace spillway
