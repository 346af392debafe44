#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "program.h"

namespace spillway {
namespace {

// As a container's seccomp profile does: the call fails with EPERM from now on.
void forbid(unsigned call) {
  std::array code{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = code.size(), .filter = code.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) ::_exit(98);
}

struct RunBadUse : Program {
  // One line of error that holds the words, nothing on stdout, and the script has not run.
  void expect_refused(const std::vector<std::string>& arguments, int status, const std::vector<std::string>& words) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const Ended ended = spillway(arguments);
    EXPECT_EQ(ended.status, status) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_TRUE(ended.err.starts_with("spillway: error: ")) << ended.err;
    EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1) << ended.err;
    for (const std::string& word : words) EXPECT_TRUE(ended.err.contains(word)) << word << "\n" << ended.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "something was left behind, or the script ran";
  }
  // `spillway run` with these options and a script.
  static std::vector<std::string> arguments_of(std::vector<std::string> options) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"--", "touch", "ran"});
    return options;
  }
  static std::vector<std::string> with_budget(std::vector<std::string> options) {
    options.insert(options.begin(), {"--device-memory", "1GiB"});
    return arguments_of(std::move(options));
  }
  struct Refusal {
    std::vector<std::string> options;
    int status;
    std::vector<std::string> words;
  };
};

TEST_F(RunBadUse, TheCommandIsMissing) { expect_refused({"run", "--device-memory", "1GiB"}, 2, {"COMMAND"}); }

TEST_F(RunBadUse, BudgetsThatCannotBe) {
  const std::vector<Refusal> refusals{{{"--device-memory", "12 apples"}, 2, {"--device-memory", "12 apples", "8GiB"}},
                                      {{"--device-memory", ""}, 2, {"--device-memory", "8GiB"}},
                                      {{"--host-memory", ""}, 2, {"--host-memory", "8GiB"}},
                                      {{"--ssd-capacity", ""}, 2, {"--ssd-capacity", "8GiB"}},
                                      {{"--host-memory", "900TiB"}, 2, {"--host-memory 900 TiB", "give less"}},
                                      {{"--device-memory", "4KiB"}, 2, {"4 KiB", "the least is", "taskset"}},
                                      {{"--device-memory", "900TiB"}, 2, {"900 TiB", "more than"}}};
  for (const auto& [options, status, words] : refusals) expect_refused(arguments_of(options), status, words);
}

TEST_F(RunBadUse, OtherOptionsThatCannotBe) {
  const std::string nowhere = (folder / "nowhere").string(), none = (folder / "none").string();
  const std::vector<Refusal> refusals{
      {{"--host-memory", "1"}, 2, {"--host-memory 1", "less than one block"}},
      {{"--host-memory", "900TiB"}, 2, {"--host-memory 900 TiB", "together"}},
      {{"--ssd-capacity", "0"}, 2, {"--ssd-capacity 0", "less than one block"}},
      {{"--ssd-capacity", "9000TiB"}, 1, {"/var/tmp", "8.789 PiB", "--ssd-capacity"}},
      {{"--eviction-path", "teleport"}, 2, {"--eviction-path", "teleport"}},
      {{"--policy", "magic"}, 2, {"--policy", "magic"}},
      {{"--plan", "none.plan"}, 1, {"none.plan", "No such file"}},
      {{"--plan", "/etc/passwd"}, 1, {"/etc/passwd", "not a plan"}},
      {{"--plan", ""}, 2, {"--plan", "names no file"}},
      {{"--plan", "my.plan", "--policy", "g10"}, 2, {"--policy", "--plan"}},
      {{"--plan", "record/blocks.plan", "--record", "./record"}, 2, {"--plan", "--record"}},
      {{"--plan", "my.plan", "--json", "./my.plan"}, 2, {"--json ./my.plan", "another file"}},
      {{"--ssd", ""}, 2, {"--ssd", "names no folder"}},
      {{"--ssd", "nowhere"}, 1, {nowhere, "No such file", "--ssd"}},
      {{"--ssd", "/etc/passwd"}, 1, {"/etc/passwd", "not a directory", "--ssd"}},
      {{"--ssd", "/dev/shm"}, 1, {"/dev/shm", "tmpfs", "--ssd"}},
      {{"--ssd", "/proc"}, 1, {"/proc"}},
      {{"--json", ""}, 2, {"--json"}},
      {{"--json", "-"}, 2, {"--json", "-"}},
      {{"--json", "none/report.json"}, 1, {"--json", none}},
      {{"--json", "/proc/report.json"}, 1, {"--json", "/proc/report.json"}},
      {{"--record", ""}, 2, {"--record", "names no folder"}},
      {{"--record", "/dev/null"}, 1, {"--record /dev/null", "no folder"}},
      {{"--record", "/proc/none"}, 1, {"--record /proc/none"}},
      {{"--record", ".", "--json", "run.journal"}, 2, {"--json run.journal", "--record"}},
      {{"--record", ".", "--json", "./model.trace"}, 2, {"--json ./model.trace", "--record"}},
      {{"--record", ".", "--json", "blocks.plan"}, 2, {"--json blocks.plan", "--record"}},
      {{"--record", ".", "--json", "blocks.trace"}, 2, {"--json blocks.trace", "--record"}},
      {{"--record", "one", "--json", "one"}, 1, {"--json one", "folder"}},
  };
  for (const auto& [options, status, words] : refusals) expect_refused(with_budget(options), status, words);
}

TEST_F(RunBadUse, TheRecordsFolderIsAnotherRuns) {
  const Ended ended = spillway({"run", "--device-memory", "1GiB", "--record", ".", "--", program.string(), "run",
                                "--device-memory", "1GiB", "--record", ".", "--", "touch", "ran"});
  EXPECT_EQ(ended.status, 1) << ended.err;
  EXPECT_TRUE(ended.err.contains("spillway: error: --record .: another run is writing there")) << ended.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}
TEST_F(RunBadUse, ThereIsNoIoUring) {
  before_exec = [] { forbid(SYS_io_uring_setup); };
  expect_refused(with_budget({}), 1, {"io_uring", "seccomp"});
}
TEST_F(RunBadUse, PageFaultsMayNotBeServed) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become a user without the right";
  std::filesystem::permissions(folder.parent_path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  before_exec = [] {
    forbid(SYS_userfaultfd);
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(98);
  };
  expect_refused(with_budget({}), 1, {"userfaultfd", "Run as root"});
}
TEST_F(RunBadUse, TheSsdFolderIsAnotherUsers) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::filesystem::permissions(folder.parent_path(), std::filesystem::perms::all);
  before_exec = [] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(98);
  };
  expect_refused(with_budget({"--ssd", folder.string()}), 1, {folder.string(), "Permission denied", "--ssd"});
}
TEST_F(RunBadUse, TheHooksLibraryIsMissing) {
  std::filesystem::remove(program.parent_path() / "libspillway_torch.so");
  expect_refused(with_budget({}), 1, {"libspillway_torch.so is missing", "SPILLWAY_PYTHON"});
}

// What is no option of ours is the script's after the program's name only.
TEST_F(RunBadUse, AMistypedOptionIsNotTheScripts) {
  expect_refused({"run", "--device-memry=1GiB", "--", "touch", "ran"}, 2,
                 {"unknown option --device-memry", "run --help"});
  expect_refused(with_budget({"--quit"}), 2, {"unknown option --quit"});
  expect_refused(with_budget({"-q"}), 2, {"unknown option -q"});
  expect_refused({"trace", "-oa.trace", "--itertion", "3", "--", "touch", "ran"}, 2, {"unknown option --itertion"});
  EXPECT_EQ(spillway({"run", "--device-memory", "1GiB", "--quiet", "echo", "--quit"}).out, "--quit\n");
}

TEST_F(RunBadUse, ALimitOnFileSizesBelowWhatARunNeedsIsSaid) {
  before_exec = [] {
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  expect_refused(with_budget({}), 1, {"ulimit -f", "1 MiB", "raise it"});
}

TEST_F(RunBadUse, ALimitOnAddressesBelowWhatARunReservesIsSaid) {
  before_exec = [] {
    const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
  };
  expect_refused(with_budget({}), 1, {"addresses", "ulimit -v"});
}

}  // namespace
}  // namespace spillway
