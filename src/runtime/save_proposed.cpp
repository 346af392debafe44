#include "runtime/save_proposed.h"

#include <cstdio>

#include "base/files.h"
#include "plan/plan_file.h"
#include "trace/format.h"

namespace spillway {

ProposalFiles plan_files(const std::string& stem) { return {.trace = stem + ".trace", .plan = stem + ".plan"}; }

namespace {

Result<> save(const Proposal& proposed, const std::string& script, const ProposalFiles& files) {
  Trace trace = proposed.blocks;
  trace.name = script;
  TRY_VOID(validate(trace, "cannot write trace " + files.trace));
  TRY(const std::string content, to_json(trace));
  Plan plan = proposed.run.followed.commands;
  plan.trace_name = trace.name;
  plan.trace_hash = trace_hash(content);
  TRY_VOID(write_file(files.trace, content));
  return save_plan(files.plan, plan);
}

}  // namespace

Result<> save_proposed(const Proposal& proposed, const std::string& script, const ProposalFiles& files) {
  auto saved = save(proposed, script, files);
  if (!saved)  // One that was followed before would be taken for this one, and a trace without its plan for another's.
    for (const std::string& file : {files.plan, files.trace}) std::remove(file.c_str());
  return saved;
}

}  // namespace spillway
