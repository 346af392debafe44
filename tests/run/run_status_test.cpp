#include "program.h"

namespace spillway {
namespace {

struct RunStatus : Program {};

TEST_F(RunStatus, IsTheScriptsOwn) { EXPECT_EQ(run({}, {"sh", "-c", "kill -SEGV $$"}).status, 128 + 11); }

TEST_F(RunStatus, IsAsShellsSayWhenThereIsNoSuchProgram) {
  const Ended missing = run({}, {"no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.err, "spillway: error: cannot run no-such-program: no such program; check its name and PATH\n");
  EXPECT_EQ(run({}, {"/etc/passwd"}).status, 126);
}

TEST_F(RunStatus, AScriptWithoutPyTorchGetsOneLine) {
  const Ended ended = run({}, {"echo", "hello"});
  EXPECT_EQ(ended.out, "hello\n");
  EXPECT_TRUE(ended.err.contains("made no tensors with PyTorch"));
  EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1);
}

TEST_F(RunStatus, ArgumentsReachTheScriptAsTheyAre) {
  const Ended ended = run({}, {"printf", "<%s>", "", "--json", "a b", "--", "-x", "[1,2]", "%%"});
  EXPECT_EQ(ended.out, "<><--json><a b><--><-x><[1,2]><%%>");
}

TEST_F(RunStatus, TheLibraryIsLoadedBesideOneThatTheUserPreloads) {
  EXPECT_EQ(run({}, {"sh", "-c", "echo $STAND_IN_LOADED"}).out, "yes\n");
  ::setenv("LD_PRELOAD", "libm.so.6", 1);
  const Ended ended = run({}, {"sh", "-c", "echo $STAND_IN_LOADED ${LD_PRELOAD%%:*}"});
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(ended.out, "yes libm.so.6\n");
}

}  // namespace
}  // namespace spillway
