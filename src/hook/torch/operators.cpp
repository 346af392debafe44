#include "hook/torch/operators.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace spillway {
namespace {

// Operators that touch rows of an argument which nobody knows beforehand.
struct SparseArgument {
  std::string_view name, argument;
};
constexpr std::array kSparse{
    SparseArgument{"aten::embedding", "weight"},      SparseArgument{"aten::embedding_bag", "weight"},
    SparseArgument{"aten::_embedding_bag", "weight"}, SparseArgument{"aten::embedding_renorm_", "self"},
    SparseArgument{"aten::index_select", "self"},     SparseArgument{"aten::index", "self"},
    SparseArgument{"aten::gather", "self"},           SparseArgument{"aten::take", "self"},
    SparseArgument{"aten::take_along_dim", "self"},   SparseArgument{"aten::index_put_", "self"},
    SparseArgument{"aten::_index_put_impl_", "self"}, SparseArgument{"aten::index_add_", "self"},
    SparseArgument{"aten::index_copy_", "self"},      SparseArgument{"aten::index_fill_", "self"},
    SparseArgument{"aten::scatter_", "self"},         SparseArgument{"aten::scatter_add_", "self"},
    SparseArgument{"aten::scatter_reduce_", "self"},  SparseArgument{"aten::put_", "self"},
};

// In place, and yet they do not read what was there.
constexpr std::array<std::string_view, 11> kOverwrite{
    "aten::zero_",      "aten::fill_",        "aten::copy_",       "aten::normal_", "aten::uniform_",  "aten::random_",
    "aten::bernoulli_", "aten::exponential_", "aten::log_normal_", "aten::cauchy_", "aten::geometric_"};

constexpr std::array<std::string_view, 7> kIgnored{
    "aten::item",    "aten::_local_scalar_dense", "aten::empty", "aten::set_", "aten::randperm",
    "aten::random_", "aten::is_nonzero"};

// They make views, and their schemas do not say so.
constexpr std::array<std::string_view, 4> kUnsafeViews{"aten::_unsafe_view", "aten::unsafe_chunk", "aten::unsafe_split",
                                                       "aten::unsafe_split_with_sizes"};

// They always update running statistics, and their schemas do not say so.
constexpr std::array<std::string_view, 3> kUpdateStatistics{
    "aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts", "aten::batch_norm_update_stats"};

template <class List>
bool is_in(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

void find_unannotated_writes(const c10::FunctionSchema& schema, Operator& op) {
  const std::string_view name = schema.name();
  const bool norm = name.find("batch_norm") != name.npos || name.find("instance_norm") != name.npos;
  const bool backward = name.find("backward") != name.npos;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const std::string_view argument = schema.arguments()[i].name();
    if (name == "aten::mkldnn_rnn_layer_backward" && argument == "workspace")
      op.arguments[i].use = Operator::Use::updates;
    if (!norm || backward) continue;
    const bool is_statistic = argument == "running_mean" || argument == "running_var";
    if (is_statistic && is_in(kUpdateStatistics, name)) op.arguments[i].use = Operator::Use::updates;
    if (is_statistic) op.statistics.push_back(static_cast<int>(i));
    if (argument == "training" || argument == "train" || argument == "use_input_stats")
      op.writes_statistics_if = static_cast<int>(i);
  }
}

bool returns_views(const c10::FunctionSchema& schema) {
  return !schema.returns().empty() && std::ranges::all_of(schema.returns(), [](const c10::Argument& value) {
    return value.alias_info() != nullptr && !value.alias_info()->isWrite();
  });
}

// Only where PyTorch says so: an operator that somebody else has registered may do anything.
bool is_replayable(const c10::FunctionSchema& schema, const Operator& op) {
  const std::string_view name = schema.name();
  if (!name.starts_with("aten::")) return false;
  // What is merely allocated may be filled by something that is no operator.
  if (name.find("empty") != name.npos) return false;
  // They draw masks, or write to what they keep for the backward pass, and not all of them say so.
  if (name.find("rnn") != name.npos || name.find("dropout") != name.npos) return false;
  const auto found = c10::Dispatcher::singleton().findSchema({schema.name(), schema.overload_name()});
  if (!found || found->hasTag(at::Tag::nondeterministic_seeded)) return false;
  const bool updates_statistics_only = !op.statistics.empty() && op.writes_statistics_if >= 0;
  if (found->hasTag(at::Tag::maybe_aliasing_or_mutating) && !updates_statistics_only) return false;
  const auto aliases = [](const c10::Argument& value) { return value.alias_info() != nullptr; };
  const auto writes = [](const Operator::Argument& argument) { return argument.use != Operator::Use::reads; };
  return std::ranges::none_of(schema.arguments(), aliases) && std::ranges::none_of(schema.returns(), aliases) &&
         std::ranges::none_of(op.arguments, writes);
}

Operator describe(const c10::FunctionSchema& schema) {
  Operator op;
  op.schema_name = schema.name();
  op.name = schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
  op.copies = op.name == "aten::copy_";
  op.ignored = is_in(kIgnored, schema.name());
  op.fills_new = schema.name() == std::string_view("aten::randperm");
  op.only_looks = returns_views(schema) || is_in(kUnsafeViews, schema.name());
  for (const c10::Argument& argument : schema.arguments()) {
    Operator::Argument& entry = op.arguments.emplace_back();
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite())
      entry.use =
          argument.is_out() || is_in(kOverwrite, schema.name()) ? Operator::Use::writes : Operator::Use::updates;
    entry.sparse = std::ranges::any_of(kSparse, [&](const SparseArgument& sparse) {
      return sparse.name == schema.name() && sparse.argument == argument.name();
    });
  }
  find_unannotated_writes(schema, op);
  op.replayable = is_replayable(schema, op);
  return op;
}

}  // namespace

const Operator* Operators::find(const at::RecordFunction& call) {
  const char* name = call.name();
  // This thread's latest ones, for which it needs no lock: of two in one place the newer one stays.
  struct Known {
    const char* name = nullptr;
    const Operator* op = nullptr;
  };
  thread_local std::array<Known, 256> latest;
  Known& known = latest[(reinterpret_cast<std::uintptr_t>(name) >> 4) % latest.size()];
  if (known.name != name || known.op->schema_name != name) known = {name, find_or_describe(call)};
  if (known.op == nullptr) known.name = nullptr;
  return known.op;
}

const Operator* Operators::find_or_describe(const at::RecordFunction& call) {
  const char* name = call.name();
  {
    const SharedLock lock(mutex_);
    const auto known = known_.find(name);
    if (known != known_.end() && known->second->schema_name == name) return known->second;
  }
  const auto schema = call.operator_schema();
  if (!schema) return nullptr;
  Operator op = describe(*schema);
  const MutexLock lock(mutex_);
  const Operator*& place = known_[name];
  // An operator may have been unregistered and another one have taken its place.
  if (place == nullptr || place->schema_name != name) place = &described_.emplace_back(std::move(op));
  return place;
}

}  // namespace spillway
