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
    const Ended ended = spillway(arguments);
    EXPECT_EQ(ended.status, status) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_TRUE(ended.err.starts_with("spillway: error: ")) << ended.err;
    EXPECT_EQ(ended.err.find('\n'), ended.err.size() - 1) << ended.err;
    for (const std::string& word : words)
      EXPECT_NE(ended.err.find(word), std::string::npos) << word << "\n" << ended.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "something was left behind, or the script ran";
  }
  const std::vector<std::string> script{"--", "touch", "ran"};
  std::vector<std::string> with_budget(std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--device-memory", "1GiB"});
    options.insert(options.end(), script.begin(), script.end());
    return options;
  }
};

TEST_F(RunBadUse, TheCommandIsMissing) { expect_refused({"run", "--device-memory", "1GiB"}, 2, {"COMMAND"}); }
TEST_F(RunBadUse, TheBudgetIsNoSize) {
  expect_refused({"run", "--device-memory", "12 apples", "--", "touch", "ran"}, 2,
                 {"--device-memory", "12 apples", "8GiB"});
}
TEST_F(RunBadUse, SizesAreMissing) {
  for (const std::string option : {"--device-memory", "--host-memory", "--ssd-capacity"})
    expect_refused({"run", option, "", "--", "touch", "ran"}, 2, {option, "8GiB"});
}
TEST_F(RunBadUse, ThePlanLiesWhereSomethingIsWritten) {
  expect_refused(with_budget({"--plan", "record/blocks.plan", "--record", "./record"}), 2, {"--plan", "--record"});
  expect_refused(with_budget({"--plan", "my.plan", "--json", "./my.plan"}), 2, {"--json ./my.plan", "another file"});
}
TEST_F(RunBadUse, TheHostMemoryLeavesNone) {
  expect_refused({"run", "--host-memory", "900TiB", "--", "touch", "ran"}, 2, {"--host-memory 900 TiB", "give less"});
}
TEST_F(RunBadUse, TheBudgetIsTooSmall) {
  expect_refused({"run", "--device-memory", "4KiB", "--", "touch", "ran"}, 2, {"4 KiB", "the least is", "taskset"});
}
TEST_F(RunBadUse, TheBudgetIsMoreThanThereIs) {
  expect_refused({"run", "--device-memory", "900TiB", "--", "touch", "ran"}, 2, {"900 TiB", "more than"});
}
TEST_F(RunBadUse, TheHostMemoryIsLessThanABlock) {
  expect_refused(with_budget({"--host-memory", "1"}), 2, {"--host-memory 1", "less than one block"});
}
TEST_F(RunBadUse, TheBudgetsTogetherAreMoreThanThereIs) {
  expect_refused(with_budget({"--host-memory", "900TiB"}), 2, {"--host-memory 900 TiB", "together"});
}
TEST_F(RunBadUse, TheSsdCapacityIsLessThanABlock) {
  expect_refused(with_budget({"--ssd-capacity", "0"}), 2, {"--ssd-capacity 0", "less than one block"});
}
TEST_F(RunBadUse, TheSsdHasLessThanItsCapacity) {
  expect_refused(with_budget({"--ssd-capacity", "9000TiB"}), 1, {"/var/tmp", "8.789 PiB", "--ssd-capacity"});
}
TEST_F(RunBadUse, TheEvictionPathIsUnknown) {
  expect_refused(with_budget({"--eviction-path", "teleport"}), 2, {"--eviction-path", "teleport"});
}
TEST_F(RunBadUse, ThePolicyIsUnknown) { expect_refused(with_budget({"--policy", "magic"}), 2, {"--policy", "magic"}); }
TEST_F(RunBadUse, ThePlanIsMissing) {
  expect_refused(with_budget({"--plan", "none.plan"}), 1, {"none.plan", "No such file"});
}
TEST_F(RunBadUse, ThePlanIsNone) {
  expect_refused(with_budget({"--plan", "/etc/passwd"}), 1, {"/etc/passwd", "not a plan"});
}
TEST_F(RunBadUse, ThePlanHasNoName) { expect_refused(with_budget({"--plan", ""}), 2, {"--plan", "names no file"}); }
TEST_F(RunBadUse, APolicyIsNamedBesideAPlan) {
  expect_refused(with_budget({"--plan", "my.plan", "--policy", "g10"}), 2, {"--policy", "--plan"});
}
TEST_F(RunBadUse, TheSsdFolderHasNoName) {
  expect_refused(with_budget({"--ssd", ""}), 2, {"--ssd", "names no folder"});
}
TEST_F(RunBadUse, TheSsdFolderIsMissing) {
  expect_refused(with_budget({"--ssd", "nowhere"}), 1, {(folder / "nowhere").string(), "No such file", "--ssd"});
}
TEST_F(RunBadUse, TheSsdFolderIsAFile) {
  expect_refused(with_budget({"--ssd", "/etc/passwd"}), 1, {"/etc/passwd", "not a directory", "--ssd"});
}
TEST_F(RunBadUse, TheSsdIsMemory) {
  expect_refused(with_budget({"--ssd", "/dev/shm"}), 1, {"/dev/shm", "tmpfs", "--ssd"});
}
TEST_F(RunBadUse, TheSsdTakesNoFiles) { expect_refused(with_budget({"--ssd", "/proc"}), 1, {"/proc"}); }
TEST_F(RunBadUse, TheReportHasNoName) { expect_refused(with_budget({"--json", ""}), 2, {"--json"}); }
TEST_F(RunBadUse, TheReportIsStandardOutput) { expect_refused(with_budget({"--json", "-"}), 2, {"--json", "-"}); }
TEST_F(RunBadUse, TheReportsFolderIsMissing) {
  expect_refused(with_budget({"--json", "none/report.json"}), 1, {"--json", (folder / "none").string()});
}
TEST_F(RunBadUse, TheReportCannotBeWritten) {
  expect_refused(with_budget({"--json", "/proc/report.json"}), 1, {"--json", "/proc/report.json"});
}
TEST_F(RunBadUse, TheRecordsFolderHasNoName) {
  expect_refused(with_budget({"--record", ""}), 2, {"--record", "names no folder"});
}
TEST_F(RunBadUse, TheRecordsFolderIsAnotherRuns) {
  const Ended ended = spillway({"run", "--device-memory", "1GiB", "--record", ".", "--", program.string(), "run",
                                "--device-memory", "1GiB", "--record", ".", "--", "touch", "ran"});
  EXPECT_EQ(ended.status, 1) << ended.err;
  EXPECT_NE(ended.err.find("spillway: error: --record .: another run is writing there"), std::string::npos)
      << ended.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}
TEST_F(RunBadUse, TheReportIsWhereTheRecordIs) {
  for (const std::string file : {"run.journal", "./model.trace", "blocks.plan", "blocks.trace"})
    expect_refused(with_budget({"--record", ".", "--json", file}), 2, {"--json " + file, "--record"});
  expect_refused(with_budget({"--record", "one", "--json", "one"}), 1, {"--json one", "folder"});
}
TEST_F(RunBadUse, TheRecordsFolderIsNone) {
  expect_refused(with_budget({"--record", "/dev/null"}), 1, {"--record /dev/null", "no folder"});
}
TEST_F(RunBadUse, TheRecordsFolderCannotBeMade) {
  expect_refused(with_budget({"--record", "/proc/none"}), 1, {"--record /proc/none"});
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
