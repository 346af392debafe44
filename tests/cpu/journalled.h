#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "journal/replay.h"
#include "runtime/pager.h"

namespace spillway {

// The journal of one pager, which goes with this.
class JournalOfATest {
 public:
  // Whoever runs with this writes it. What stops it before the run ends fails the test.
  JournalOptions options() const {
    return {.path = path_, .on_stop = [](std::string_view why) { ADD_FAILURE() << why; }};
  }
  ~JournalOfATest() { std::filesystem::remove(path_); }

  // Once the pager is gone: the decisions are the same when they are made again.
  Replay replayed(const ReplayOptions& options = {}) const {
    auto journal = JournalReader::open_file(path_);
    if (!journal) ADD_FAILURE() << journal.error().message;
    auto done = journal ? replay(*journal, options) : std::unexpected(journal.error());
    if (!done) ADD_FAILURE() << done.error().message;
    if (!done) return {};
    EXPECT_TRUE(done->equal()) << done->why;
    if (const auto& difference = done->difference)
      ADD_FAILURE() << "event " << difference->moment.event << ", " << difference->moment.what << ": "
                    << testing::PrintToString(difference->recorded) << " became "
                    << testing::PrintToString(difference->replayed);
    EXPECT_GT(done->events, 0u);
    return *done;
  }

 private:
  static std::string unique_path() {
    static std::atomic<int> count{0};
    return testing::TempDir() + "spillway-journal-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
  }
  std::string path_ = unique_path();
};

}  // namespace spillway
