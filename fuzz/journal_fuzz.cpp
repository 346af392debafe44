// Journals: any bytes are an error or records, and whatever the records say that happened, the replay refuses it or the
// decision code can answer. A picture of it stays within its time. The records are taken as they are too: most
// mutations of compressed bytes are none.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "journal/iteration_ends.h"
#include "journal/journal_file.h"
#include "journal/replay.h"
#include "journal/run_names.h"
#include "journal/run_recorder.h"

namespace {

using namespace spillway;

void read(std::string_view bytes) {
  auto journal = JournalReader::open_bytes(bytes, "input");
  if (!journal) {
    CHECK(!journal.error().message.empty());
    return;
  }
  IterationEnds ends;
  if (auto survey = JournalReader::open_bytes(bytes, "input"))
    for (auto record = survey->next(); record && *record; record = survey->next())
      if (const auto* ended = std::get_if<IterationEnded>(&**record)) ends.take(*ended);
  const RunNames names(nullptr);
  RunRecorder recorder({.last = std::max<std::uint64_t>(ends.count(), 1)}, ends, names);
  const auto done = replay(*journal, {.before = 2, .most_blocks = 4096, .observer = &recorder});
  if (const auto timeline = recorder.finish())
    for (const PlayedKernel& kernel : timeline->kernels) CHECK(kernel.end <= timeline->iteration);
  CHECK(done || !done.error().message.empty());
  CHECK(!done || done->equal() || done->difference || !done->why.empty());
}

// A zstd frame that holds them uncompressed.
std::string framed(std::string_view records) {
  constexpr std::size_t kMostInBlock = 128 << 10;
  std::string frame = std::string(kJournalMagic) + std::to_string(kJournalVersion) + "\n";
  frame.append("\x28\xb5\x2f\xfd\x00\x38", 6);  // no checksum, no size, a window of 128 KiB
  do {
    const std::string_view block = records.substr(0, kMostInBlock);
    records.remove_prefix(block.size());
    const std::size_t header = block.size() << 3 | (records.empty() ? 1 : 0);
    for (const int shift : {0, 8, 16}) frame.push_back(static_cast<char>(header >> shift));
    frame.append(block);
  } while (!records.empty());
  return frame;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  read(bytes);
  read(framed(bytes));
  return 0;
}
