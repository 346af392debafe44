// A script's process as the supervisor sees it, without PyTorch: does to the session what its arguments say, one by
// one.
//
//   claim        becomes the owner, or registers as unmanaged       count      adds to every counter
//   error TEXT   reports an error                                   record     writes the trace file and says so
//   no-trace TEXT  says why there is none                           trace-mode fails unless only a trace is wanted
//   stuck        starts a write that never ends
//   die          kills itself with SIGKILL
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/files.h"
#include "session/hook_side.h"

namespace {

using spillway::Session;
using spillway::Tier;

void count(Session& session) {
  auto& state = session.state;
  state.eviction_path = spillway::EvictionMethod::copy;
  spillway::MemoryFigures memory = state.memory.load();
  memory.faults += 7;
  memory.stall += spillway::Nanos{1'500'000'000};
  memory.moved(Tier::device, Tier::ssd) += spillway::Bytes{1000};
  memory.moved(Tier::ssd, Tier::device) += spillway::Bytes{500};
  memory.peak = {.device = {4096}, .ssd = {8192}};
  state.memory.store(memory);
  spillway::raise_peak(state.unmanaged_peak_bytes, 77);
  state.iterations.add({.duration = {2'000'000'000}, .faults = 4});
  state.iterations.add({.duration = {1'000'000'000}, .faults = 3});
}

void record(Session& session) {
  const char* file = session.config.record_path.data();
  if (spillway::write_file(file, "{}\n")) session.state.recorded = 1;
}

}  // namespace

int main(int argc, char** argv) {
  Session* session = spillway::open_session();
  if (session == nullptr) {
    std::fputs("no session\n", stderr);
    return 90;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view step = argv[i];
    if (step == "claim") {
      if (!spillway::claim_ownership(*session)) spillway::register_unmanaged(*session);
    } else if (step == "count") {
      count(*session);
    } else if (step == "error") {
      session->state.error.set(argv[++i]);
    } else if (step == "stuck") {
      const spillway::DiskWait wait(&session->state.disk_waits, spillway::WaitsFor::block_write);
      for (;;) ::pause();
    } else if (step == "record") {
      record(*session);
    } else if (step == "no-trace") {
      session->state.not_recorded.set(argv[++i]);
    } else if (step == "trace-mode") {
      if (session->config.mode != spillway::SessionMode::trace) return 91;
    } else if (step == "die") {
      ::raise(SIGKILL);
    } else {
      return 92;
    }
  }
  return 0;
}
