#include "program.h"

namespace spillway {
namespace {

struct TraceCommand : Program {
  Ended trace(const std::vector<std::string>& command) const {
    std::vector<std::string> arguments{"trace", "-o", "model.trace", "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    return spillway(arguments);
  }
};

TEST_F(TraceCommand, WritesTheFileAndSaysWhatToDoWithIt) {
  const Ended ended = trace({"sh", "-c", "echo hello; cd /; exec \"$0\" trace-mode claim record", FAKE_HOOK});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "hello\n");
  EXPECT_EQ(ended.err, "spillway: the trace is in model.trace; look at it with: spillway show model.trace\n");
  EXPECT_EQ(text_of(folder / "model.trace"), "{}\n");
}

TEST_F(TraceCommand, SaysWhyThereIsNone) {
  const Ended ended = trace({FAKE_HOOK, "claim", "no-trace", "no two iterations were equal"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.err, "spillway: error: no trace was written to model.trace: no two iterations were equal\n");
  EXPECT_TRUE(trace({"true"}).err.contains("the script made no tensors with PyTorch"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(TraceCommand, AFailedScriptKeepsItsStatus) {
  EXPECT_EQ(trace({"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(trace({"no-such-program"}).status, 127);
}

TEST_F(TraceCommand, AnUnwritableFileIsFoundBeforeTheScriptStarts) {
  const Ended ended = spillway({"trace", "-o", "none/model.trace", "--", "touch", "ran"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.err.contains("there is no folder")) << ended.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace spillway
