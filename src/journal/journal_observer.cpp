#include "journal/journal_observer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/version.h"
#include "journal/coder.h"
#include "journal/fields.h"
#include "journal/record.h"
#include "policies/policies.h"

namespace spillway {
namespace {

// Where a record of this kind stands in the variant.
template <class Kind, class... T>
constexpr std::size_t index_in(const std::variant<T...>*) {
  std::size_t index = 0;
  static_cast<void>(((std::same_as<Kind, T> ? true : (++index, false)) || ...));
  return index;
}
template <class Kind>
constexpr std::size_t kIndex = index_in<Kind>(static_cast<Record*>(nullptr));

// One that is in no table is replayed by nobody, and the name says so.
std::string name_of(OnlineMaker make) {
  if (make == nullptr) return {};
  const auto known = std::ranges::find(kPolicies, make, [](const Policy& policy) { return policy.traits.online; });
  return known != kPolicies.end() ? std::string(known->name) : "(not in the table of policies)";
}

}  // namespace

JournalObserver::JournalObserver(JournalFile& file, const Beginnings& beginnings, std::function<Nanos()> ago)
    : file_(file), ago_(std::move(ago)) {
  const PageTable& table = beginnings.table;
  const PerTier<Bytes> capacity{table.capacity(Tier::device), table.capacity(Tier::host), table.capacity(Tier::ssd)};
  write<Beginning>(Beginning{std::string(kVersion), capacity, block_runs(table), beginnings.options,
                             name_of(beginnings.online), beginnings.online_device});
}

// The records are those of record.h, written field by field: nothing is copied for it.
template <class Kind, class... T>
void JournalObserver::write(const T&... fields_of_record) {
  record_.clear();
  Encoder encode(record_);
  encode(kIndex<Kind>, fields_of_record...);
  file_.append(record_);
}

void JournalObserver::told(const Stamped& event) {
  CHECK(event.at >= last_);
  write<Told>(event.at - std::exchange(last_, event.at), ago_ ? ago_() : Nanos{}, event.what);
}

void JournalObserver::asked(std::span<const Command> commands, const std::optional<Failure>& failure) {
  if (!commands.empty() || failure) write<Asked>(commands, failure);
}

}  // namespace spillway
