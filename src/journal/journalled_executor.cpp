#include "journal/journalled_executor.h"

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
std::string name_of(std::unique_ptr<OnlinePolicy> (*make)(Bytes)) {
  if (make == nullptr) return {};
  const auto known = std::ranges::find(kPolicies, make, [](const Policy& policy) { return policy.traits.online; });
  return known != kPolicies.end() ? std::string(known->name) : "(not in the table of policies)";
}

}  // namespace

JournalledExecutor::JournalledExecutor(PageTable table, const ExecutorOptions& options, Online online, Journal journal)
    : journal_(std::move(journal)),
      executor_(write_beginning(std::move(table), options, online), options,
                online.make != nullptr ? online.make(online.device) : nullptr) {}

// The records are those of record.h, written field by field: nothing is copied for it.
template <class Kind, class... T>
void JournalledExecutor::write(const T&... fields_of_record) {
  record_.clear();
  Encoder encode(record_);
  encode(kIndex<Kind>, fields_of_record...);
  journal_.file->append(record_);
}

PageTable JournalledExecutor::write_beginning(PageTable table, const ExecutorOptions& options, Online online) {
  if (journal_.file == nullptr) return table;
  const PerTier<Bytes> capacity{table.capacity(Tier::device), table.capacity(Tier::host), table.capacity(Tier::ssd)};
  write<Beginning>(
      Beginning{std::string(kVersion), capacity, block_runs(table), options, name_of(online.make), online.device});
  return table;
}

void JournalledExecutor::adopt(const Plan& plan, std::uint32_t kernel_count, const Executor::Iteration& iteration) {
  if (journal_.file != nullptr) write<Adoption>(plan, kernel_count, iteration);
  executor_.adopt(plan, kernel_count, iteration);
}

void JournalledExecutor::on(const Stamped& event, std::vector<Command>& out) {
  out.clear();
  if (journal_.file == nullptr) return executor_.on(event.what, out);
  const std::uint64_t iterations = journal_.iterations ? journal_.iterations() : 0;
  // Before the executor sees it: should that end the process, the event is the journal's last one.
  write<Told>(event.at - std::exchange(last_, event.at), iterations, event.what);
  executor_.on(event.what, out);
  if (!out.empty() || failure()) write<Asked>(out, failure());
}

}  // namespace spillway
